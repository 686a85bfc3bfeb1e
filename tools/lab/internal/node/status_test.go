package node

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/knobs"
)

func addrs(texts ...string) []netip.Addr {
	var out []netip.Addr
	for _, t := range texts {
		out = append(out, netip.MustParseAddr(t))
	}
	return out
}

func TestInterfaceStatusIsVirtHandlers(t *testing.T) {
	cards := []guest.NIC{{Name: "mgmt", MAC: "02:00:00:00:00:01"}, {Name: "data-net", MAC: "02:00:00:00:00:02"}}
	before := []kubevirtv1.VirtualMachineInstanceNetworkInterface{{Name: "data-net", PodInterfaceName: "pod7e0055a6880", InfoSource: "multus-status"}}
	r := report{connected: true, interfaces: []guest.Interface{
		{MAC: "00:00:00:00:00:00", Device: "lo", Addresses: addrs("127.0.0.1")},
		{MAC: "02:00:00:00:00:02", Device: "enp2s0", Addresses: addrs("fe80::1", "198.18.0.10")},
		{MAC: "02:42:00:00:00:09", Device: "docker0", Addresses: addrs("172.17.0.1")},
	}}
	want := []kubevirtv1.VirtualMachineInstanceNetworkInterface{
		{Name: "mgmt", MAC: "02:00:00:00:00:01", InfoSource: "domain", QueueCount: 1, LinkState: "up"},
		{
			Name: "data-net", MAC: "02:00:00:00:00:02", IP: "198.18.0.10", IPs: []string{"198.18.0.10", "fe80::1"}, InterfaceName: "enp2s0",
			InfoSource: "domain, guest-agent, multus-status", PodInterfaceName: "pod7e0055a6880", QueueCount: 1, LinkState: "up",
		},
		{MAC: "02:42:00:00:00:09", IP: "172.17.0.1", IPs: []string{"172.17.0.1"}, InterfaceName: "docker0", InfoSource: "guest-agent"},
	}
	if d := cmp.Diff(want, interfaceStatus(cards, r, before, false)); d != "" {
		t.Error(d)
	}
}

func TestKnobsBendAddresses(t *testing.T) {
	cards := []guest.NIC{{Name: "data-net", MAC: "02:00:00:00:00:02"}}
	nics := []guest.Interface{{MAC: "02:00:00:00:00:02", Device: "enp1s0", Addresses: addrs("198.18.0.10")}}
	for name, c := range map[string]struct {
		knobs knobs.Values
		since time.Duration
		want  []guest.Interface
	}{
		"no knob":   {nil, 0, nics},
		"too early": {knobs.Values{knobs.AddressAfter: "5s"}, 4 * time.Second, []guest.Interface{{MAC: "02:00:00:00:00:02", Device: "enp1s0"}}},
		"late":      {knobs.Values{knobs.AddressAfter: "5s"}, 5 * time.Second, nics},
		"list": {knobs.Values{knobs.Addresses: `[{"after":"0s","addresses":{"data-net":["10.0.2.2"],"docker0":["172.17.0.1"]}}]`}, time.Second, []guest.Interface{
			{MAC: "02:00:00:00:00:02", Device: "enp1s0", Addresses: addrs("10.0.2.2")},
			{MAC: macFrom("docker0"), Device: "docker0", Addresses: addrs("172.17.0.1")},
		}},
	} {
		if d := cmp.Diff(c.want, bendAddresses(nics, cards, c.knobs, c.since), cmpopts.EquateComparable(netip.Addr{})); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestMachineIsDescribed(t *testing.T) {
	vmi := database()
	vmi.Status.VolumeStatus = []kubevirtv1.VolumeStatus{
		{Name: "pgdata-disk", PersistentVolumeClaimInfo: &kubevirtv1.PersistentVolumeClaimInfo{ClaimName: "pg-a-data", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}}},
		{Name: "cloudinit"},
	}
	describeMachine(vmi, guest.Spec{}, report{connected: true, os: parseOSRelease("NAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\n")}, false)
	conditions := map[kubevirtv1.VirtualMachineInstanceConditionType]corev1.ConditionStatus{}
	for _, c := range vmi.Status.Conditions {
		conditions[c.Type] = c.Status
	}
	want := map[kubevirtv1.VirtualMachineInstanceConditionType]corev1.ConditionStatus{"AgentConnected": "True", "LiveMigratable": "False", "StorageLiveMigratable": "True"}
	if d := cmp.Diff(want, conditions); d != "" {
		t.Error(d)
	}
	if vmi.Status.GuestOSInfo.Name != "Debian GNU/Linux" || vmi.Status.VolumeStatus[0].Name != "cloudinit" || vmi.Status.VolumeStatus[1].Target != "vda" {
		t.Errorf("status is %+v", vmi.Status)
	}
	describeMachine(vmi, guest.Spec{}, report{}, false)
	for _, c := range vmi.Status.Conditions {
		if c.Type == kubevirtv1.VirtualMachineInstanceAgentConnected {
			t.Error("the agent is still connected")
		}
	}
}

func TestHowAGuestEndsDecidesThePhase(t *testing.T) {
	start := time.Now()
	for name, c := range map[string]struct {
		m    *machine
		want kubevirtv1.VirtualMachineInstancePhase
	}{
		"runs":                    {&machine{}, kubevirtv1.Running},
		"powered off from inside": {&machine{ended: &guest.Exit{}, end: start}, kubevirtv1.Succeeded},
		"shut down in time":       {&machine{ended: &guest.Exit{}, stopping: start, grace: time.Minute, end: start.Add(time.Second)}, kubevirtv1.Succeeded},
		"destroyed after grace":   {&machine{ended: &guest.Exit{}, stopping: start, grace: time.Minute, end: start.Add(time.Minute)}, kubevirtv1.Failed},
		"no grace wanted":         {&machine{ended: &guest.Exit{}, stopping: start, end: start.Add(time.Second)}, kubevirtv1.Succeeded},
		"crashed":                 {&machine{ended: &guest.Exit{Failed: true}}, kubevirtv1.Failed},
		"power cut":               {&machine{ended: &guest.Exit{}, killed: true}, kubevirtv1.Failed},
	} {
		if got := c.m.phase(); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
