package lab_test

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kubevirt "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/labtest"
)

func TestWebhooksDown(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	name := labtest.Name(t)
	m := labtest.Machine{Name: name}
	release := hold(t, lab, "", "webhook", "down")
	vm := m.Object(t, lab)
	if err := eventually(t, func() error {
		err := lab.User.Client.Create(t.Context(), vm.DeepCopy(), client.DryRunAll)
		if err == nil {
			return errStillServes
		}
		if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "failed calling webhook") {
			t.Fatalf("the request was answered with %v", err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	release()
	if err := eventually(t, func() error { return lab.User.Client.Create(t.Context(), vm.DeepCopy(), client.DryRunAll) }); err != nil {
		t.Errorf("after the webhooks came back: %v", err)
	}
}

func TestAClaimOfALivingMachineCanBeDeletedWithoutWebhooks(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	name := labtest.Name(t)
	m := lab.Create(t, labtest.Machine{Name: name, Halted: true})
	claim := labtest.Wait(t, lab, m.DataClaim(), "Bound", func(c *corev1.PersistentVolumeClaim) bool { return c.Status.Phase == corev1.ClaimBound })
	if err := lab.User.Client.Delete(t.Context(), m.DataClaim()); err == nil {
		t.Fatal("Harvester's webhook let a claim in use be deleted")
	}
	lab.Knob(t, "", "webhook", "removed")
	if err := eventually(t, func() error { return lab.User.Client.Delete(t.Context(), m.DataClaim()) }); err != nil {
		t.Fatal(err)
	}
	labtest.Wait(t, lab, m.DataClaim(), "a blank successor", func(c *corev1.PersistentVolumeClaim) bool { return c.UID != claim.UID })
}

func TestReplaceClaim(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	m := lab.Create(t, labtest.Machine{Name: labtest.Name(t)})
	labtest.Wait(t, lab, m.VMI(), "Running", isRunning)
	before := labtest.Wait(t, lab, m.DataClaim(), "Bound", func(c *corev1.PersistentVolumeClaim) bool { return c.Status.Phase == corev1.ClaimBound })
	lab.Run(t, "replace-claim", m.Namespace+"/"+m.DataClaim().Name)
	after := labtest.Wait(t, lab, m.DataClaim(), "Bound again", func(c *corev1.PersistentVolumeClaim) bool {
		return c.UID != before.UID && c.Status.Phase == corev1.ClaimBound
	})
	if after.Spec.VolumeName == before.Spec.VolumeName {
		t.Error("the new claim has the old volume")
	}
	if err := lab.User.Client.Delete(t.Context(), m.DataClaim()); err == nil {
		t.Error("Harvester's webhook did not come back")
	}
}

func TestAPowerCutANewAddressAndAReboot(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	m := lab.Create(t, labtest.Machine{Name: labtest.Name(t)})
	first := labtest.Wait(t, lab, m.VMI(), "an address", addressed)
	key := m.Namespace + "/" + m.Name
	lab.Run(t, "reboot", key)
	address := "198.18." + itoa(lab.Record.Network) + ".251"
	lab.Run(t, "address", key, address)
	moved := labtest.Wait(t, lab, m.VMI(), "the new address", func(v *kubevirt.VirtualMachineInstance) bool { return addressOf(v) == address })
	if moved.UID != first.UID {
		t.Error("the reboot made a new instance")
	}
	lab.Run(t, "cut", key)
	labtest.Wait(t, lab, m.VMI(), "a new instance with the same address", func(v *kubevirt.VirtualMachineInstance) bool {
		return v.UID != first.UID && addressOf(v) == address
	})
}

func TestThePackageProxyIsTold(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	told := func() error { _, err := os.Stat(lab.Dir.Path("run", "packages.down")); return err }
	release := hold(t, lab, "", "package-proxy", "down")
	if err := eventually(t, told); err != nil {
		t.Error(err)
	}
	release()
	if err := eventually(t, func() error {
		if told() == nil {
			return errStillServes
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestUnknownKnobsAreRefusedByTheCommand(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	name := labtest.Name(t)
	key := labtest.Tenant + "." + name + ".never-ready"
	lab.Run(t, "knob", key+"=true")
	if out := lab.Run(t, "knob"); !strings.Contains(out, key+"=true") {
		t.Errorf("the knobs are:\n%s", out)
	}
	lab.Run(t, "knob", key+"-")
	if out := lab.Run(t, "knob"); strings.Contains(out, key) {
		t.Errorf("the knobs are:\n%s", out)
	}
	if out, err := runLab(t.Context(), lab, "knob", "no-such-knob=1"); err == nil || !strings.Contains(out, `there is no knob "no-such-knob"`) {
		t.Errorf("%v\n%s", err, out)
	}
}
