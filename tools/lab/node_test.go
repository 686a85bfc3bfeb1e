package lab_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	kubevirt "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/labtest"
)

// The probe that the tests' machines have; a simulated guest answers it with success.
var readyProbe = []string{"/usr/local/sbin/dbaas-ready"}

func vmiCondition(vmi *kubevirt.VirtualMachineInstance, t kubevirt.VirtualMachineInstanceConditionType) *kubevirt.VirtualMachineInstanceCondition {
	for i := range vmi.Status.Conditions {
		if vmi.Status.Conditions[i].Type == t {
			return &vmi.Status.Conditions[i]
		}
	}
	return nil
}

func readyNow(vmi *kubevirt.VirtualMachineInstance) bool {
	c := vmiCondition(vmi, kubevirt.VirtualMachineInstanceReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

func notReady(vmi *kubevirt.VirtualMachineInstance) bool { return !readyNow(vmi) }

func isRunning(vmi *kubevirt.VirtualMachineInstance) bool { return vmi.IsRunning() }

// addressOf is what the provider takes: the address of the card of that name.
func addressOf(vmi *kubevirt.VirtualMachineInstance) string {
	for _, i := range vmi.Status.Interfaces {
		if i.Name == "data-net" {
			return i.IP
		}
	}
	return ""
}

func addressed(vmi *kubevirt.VirtualMachineInstance) bool { return addressOf(vmi) != "" }

// waitEvent waits for an event about an object whose name starts with prefix.
func waitEvent(t *testing.T, lab *labtest.Lab, prefix, reason, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	l := new(corev1.EventList)
	matches := func(e *corev1.Event) bool {
		return strings.HasPrefix(e.InvolvedObject.Name, prefix) && e.Reason == reason && strings.Contains(e.Message, text)
	}
	if err := lab.Admin.Client.List(ctx, l, client.InNamespace(labtest.Tenant)); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(l.Items, func(e corev1.Event) bool { return matches(&e) }) {
		return
	}
	w, err := lab.Admin.Client.Watch(ctx, new(corev1.EventList), client.InNamespace(labtest.Tenant))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for got := range w.ResultChan() {
		if e, ok := got.Object.(*corev1.Event); ok && matches(e) {
			return
		}
	}
	t.Fatalf("no event %s with %q came for %s", reason, text, prefix)
}

func runStrategy(t *testing.T, lab *labtest.Lab, m labtest.Machine, s string) error {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"runStrategy":"`+s+`"}}`))
	return lab.User.Client.Patch(t.Context(), m.VM(), patch)
}

func TestAMachineWithoutTroubleBecomesReady(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	m := lab.Create(t, labtest.Machine{Name: labtest.Name(t), Probe: readyProbe})
	vmi := labtest.Wait(t, lab, m.VMI(), "Ready and an address", func(v *kubevirt.VirtualMachineInstance) bool { return readyNow(v) && addressed(v) })
	i := vmi.Status.Interfaces[0]
	if i.MAC != m.MAC || i.InfoSource != "domain, guest-agent, multus-status" || !strings.HasPrefix(i.IP, "198.18.") {
		t.Errorf("the interface is %+v", i)
	}
	if vmi.Status.GuestOSInfo.Name != "Debian GNU/Linux" || vmiCondition(vmi, kubevirt.VirtualMachineInstanceIsMigratable).Status != corev1.ConditionTrue {
		t.Errorf("status is %+v", vmi.Status)
	}
	if vmiCondition(vmi, kubevirt.VirtualMachineInstanceAgentConnected) == nil {
		t.Error("the agent is not connected")
	}
}

func TestReadyIsHeldBackAndReleased(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	for knob, value := range map[string]string{"ready-after": "1000h", "never-ready": "true", "probe-fails": "installing packages: 40%"} {
		t.Run(knob, func(t *testing.T) {
			name := labtest.Name(t)
			release := hold(t, lab, name, knob, value)
			m := lab.Create(t, labtest.Machine{Name: name, Probe: readyProbe})
			text := "Readiness probe failed"
			if knob == "probe-fails" {
				text += ": " + value
			}
			waitEvent(t, lab, "virt-launcher-"+name, "Unhealthy", text)
			labtest.Wait(t, lab, m.VMI(), "an address, and Ready false because of the probe", func(v *kubevirt.VirtualMachineInstance) bool {
				c := vmiCondition(v, kubevirt.VirtualMachineInstanceReady)
				return addressed(v) && c != nil && c.Status == corev1.ConditionFalse && c.Reason == "ContainersNotReady"
			})
			release()
			labtest.Wait(t, lab, m.VMI(), "Ready once the knob is gone", readyNow)
		})
	}
}

func TestTheAddressIsHeldBackAndReleased(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	name := labtest.Name(t)
	release := hold(t, lab, name, "address-after", "1000h")
	m := lab.Create(t, labtest.Machine{Name: name})
	vmi := labtest.Wait(t, lab, m.VMI(), "the agent", func(v *kubevirt.VirtualMachineInstance) bool {
		return vmiCondition(v, kubevirt.VirtualMachineInstanceAgentConnected) != nil
	})
	if addressed(vmi) {
		t.Errorf("the address came at once: %+v", vmi.Status.Interfaces)
	}
	release()
	labtest.Wait(t, lab, m.VMI(), "an address once the knob is gone", addressed)
}

func TestRunningIsHeldBackAndReleased(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	name := labtest.Name(t)
	release := hold(t, lab, name, "running-after", "1000h")
	m := lab.Create(t, labtest.Machine{Name: name})
	labtest.Wait(t, lab, m.VMI(), "Scheduled", func(v *kubevirt.VirtualMachineInstance) bool { return v.IsScheduled() })
	other := lab.Create(t, labtest.Machine{Name: name + "-b"})
	labtest.Wait(t, lab, other.VMI(), "Running", isRunning)
	labtest.Wait(t, lab, m.VMI(), "still Scheduled after a later machine runs", func(v *kubevirt.VirtualMachineInstance) bool { return v.IsScheduled() })
	release()
	labtest.Wait(t, lab, m.VMI(), "Running once the knob is gone", isRunning)
}

func TestAGuestWithoutAgent(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	name := labtest.Name(t)
	release := hold(t, lab, name, "no-agent", "true")
	m := lab.Create(t, labtest.Machine{Name: name, Probe: readyProbe})
	waitEvent(t, lab, "virt-launcher-"+name, "Unhealthy", "guest agent is not connected")
	vmi := labtest.Wait(t, lab, m.VMI(), "Running", isRunning)
	if vmiCondition(vmi, kubevirt.VirtualMachineInstanceAgentConnected) != nil || addressed(vmi) || readyNow(vmi) {
		t.Errorf("status is %+v", vmi.Status)
	}
	release()
	labtest.Wait(t, lab, m.VMI(), "the agent's news once the knob is gone", func(v *kubevirt.VirtualMachineInstance) bool { return readyNow(v) && addressed(v) })
}

func TestReadyFlaps(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	name := labtest.Name(t)
	lab.Knob(t, name, "ready-flaps", "2s")
	m := lab.Create(t, labtest.Machine{Name: name, Probe: readyProbe})
	labtest.Wait(t, lab, m.VMI(), "Ready", readyNow)
	labtest.Wait(t, lab, m.VMI(), "no longer Ready", notReady)
	labtest.Wait(t, lab, m.VMI(), "Ready again", readyNow)
}

func TestAddressesChangeOverTime(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	name := labtest.Name(t)
	lab.Knob(t, name, "addresses", `[
		{"after":"2s","addresses":{"data-net":["fe80::1"]}},
		{"after":"4s","addresses":{"data-net":["fe80::1","2001:db8::5"]}},
		{"after":"6s","addresses":{"data-net":["10.0.2.2"],"docker0":["172.17.0.1"]}},
		{"after":"9s","repeat":true}]`)
	m := lab.Create(t, labtest.Machine{Name: name})
	for _, want := range []string{"", "fe80::1", "10.0.2.2", "", "fe80::1"} {
		labtest.Wait(t, lab, m.VMI(), "the address "+want, func(v *kubevirt.VirtualMachineInstance) bool {
			return v.IsRunning() && addressOf(v) == want
		})
	}
	v6 := labtest.Wait(t, lab, m.VMI(), "the second v6 address", func(v *kubevirt.VirtualMachineInstance) bool {
		return len(v.Status.Interfaces) > 0 && len(v.Status.Interfaces[0].IPs) == 2
	})
	if got := v6.Status.Interfaces[0].IPs; !slices.Equal(got, []string{"fe80::1", "2001:db8::5"}) {
		t.Errorf("the addresses are %v", got)
	}
	lab.Knob(t, name, "nic-order", "reverse")
	labtest.Wait(t, lab, m.VMI(), "an interface of the agent's in front", func(v *kubevirt.VirtualMachineInstance) bool {
		return len(v.Status.Interfaces) == 2 && v.Status.Interfaces[0].InterfaceName == "docker0" && v.Status.Interfaces[0].Name == "" && v.Status.Interfaces[1].Name == "data-net"
	})
}

func TestTheConsoleIsTheLauncherPodsLog(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	name := labtest.Name(t)
	lab.Knob(t, name, "console", "[   12.3] dbaas: package postgresql-16 was not found")
	m := lab.Create(t, labtest.Machine{Name: name})
	vmi := labtest.Wait(t, lab, m.VMI(), "Running", isRunning)
	pods, err := lab.User.Kube.CoreV1().Pods(m.Namespace).List(t.Context(), listOptions("kubevirt.io/created-by="+string(vmi.UID)))
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d pods, %v", len(pods.Items), err)
	}
	log, err := lab.User.Kube.CoreV1().Pods(m.Namespace).GetLogs(pods.Items[0].Name, &corev1.PodLogOptions{Container: "guest-console-log", TailLines: new(int64(1))}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	text, err := io.ReadAll(log)
	if err != nil || string(text) != "[   12.3] dbaas: package postgresql-16 was not found\n" {
		t.Errorf("the console's last line is %q, %v", text, err)
	}
}

func TestAnUnschedulableMachine(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	name := labtest.Name(t)
	release := hold(t, lab, name, "unschedulable", "Insufficient memory")
	m := lab.Create(t, labtest.Machine{Name: name})
	vm := labtest.Wait(t, lab, m.VM(), "ErrorUnschedulable", func(v *kubevirt.VirtualMachine) bool {
		return v.Status.PrintableStatus == kubevirt.VirtualMachineStatusUnschedulable
	})
	waitEvent(t, lab, "virt-launcher-"+name, "FailedScheduling", "0/2 nodes are available: 2 Insufficient memory.")
	if vm.Status.Ready {
		t.Error("it is ready all the same")
	}
	release()
	labtest.Wait(t, lab, m.VMI(), "Running once the knob is gone", isRunning)
}

func TestACrashLoop(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	name := labtest.Name(t)
	release := hold(t, lab, name, "crash-loop", "true")
	m := lab.Create(t, labtest.Machine{Name: name})
	labtest.Wait(t, lab, m.VM(), "CrashLoopBackOff", func(v *kubevirt.VirtualMachine) bool {
		return v.Status.PrintableStatus == kubevirt.VirtualMachineStatusCrashLoopBackOff
	})
	release()
	labtest.Wait(t, lab, m.VMI(), "Running once the knob is gone", isRunning)
}

func TestAGuestThatCrashesIsStartedAgain(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	name := labtest.Name(t)
	lab.Knob(t, name, "crash-after", "1s")
	m := lab.Create(t, labtest.Machine{Name: name})
	first := labtest.Wait(t, lab, m.VMI(), "Running", isRunning)
	waitEvent(t, lab, name, "Stopped", "The VirtualMachineInstance crashed.")
	labtest.Wait(t, lab, m.VMI(), "a new instance that runs", func(v *kubevirt.VirtualMachineInstance) bool { return v.UID != first.UID && v.IsRunning() })
}
