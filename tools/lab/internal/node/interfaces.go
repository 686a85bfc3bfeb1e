package node

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/knobs"
)

// bendAddresses applies the knobs to what the agent says. Names in the knob that
// are no card of the machine become interfaces that only the guest knows
// (docker0).
func bendAddresses(nics []guest.Interface, cards []guest.NIC, v knobs.Values, since time.Duration) []guest.Interface {
	out := slices.Clone(nics)
	switch s := v.Schedule(); {
	case since < v.Duration(knobs.AddressAfter):
		for i := range out {
			out[i].Addresses = nil
		}
	case s != nil:
		now := s.At(since)
		for i := range out {
			out[i].Addresses = now[cardName(cards, out[i].MAC)]
		}
		for _, name := range slices.Sorted(maps.Keys(now)) {
			if !slices.ContainsFunc(cards, func(n guest.NIC) bool { return n.Name == name }) {
				out = append(out, guest.Interface{MAC: macFrom(name), Device: name, Addresses: now[name]})
			}
		}
	}
	return out
}

func cardName(cards []guest.NIC, mac string) string {
	for _, n := range cards {
		if n.MAC == mac {
			return n.Name
		}
	}
	return ""
}

// macFrom draws a locally administered address from a text.
func macFrom(text string) string {
	h := sha256.Sum256([]byte(text))
	return fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", h[0], h[1], h[2], h[3], h[4])
}

// Sources of what status says about an interface (KubeVirt's vmispec).
const (
	fromDomain = "domain"
	fromAgent  = "guest-agent"
	fromMultus = "multus-status"
)

// interfaceStatus is status.interfaces as virt-handler writes it: first the
// machine's cards with what the agent says about their MAC, IPv4 before IPv6;
// then interfaces that only the agent knows. What virt-controller contributed
// (multus, the pod's interface) stays.
func interfaceStatus(cards []guest.NIC, r report, before []kubevirtv1.VirtualMachineInstanceNetworkInterface, reverse bool) []kubevirtv1.VirtualMachineInstanceNetworkInterface {
	var out []kubevirtv1.VirtualMachineInstanceNetworkInterface
	for _, n := range cards {
		st := kubevirtv1.VirtualMachineInstanceNetworkInterface{Name: n.Name, MAC: n.MAC, InfoSource: fromDomain, QueueCount: 1, LinkState: "up"}
		for _, old := range before {
			if old.Name == n.Name {
				st.PodInterfaceName = old.PodInterfaceName
			}
		}
		if a := agentInterface(r, n.MAC); a != nil {
			st.InterfaceName, st.InfoSource = a.Device, fromDomain+", "+fromAgent
			st.IPs = addressTexts(a.Addresses)
			if len(st.IPs) > 0 {
				st.IP = st.IPs[0]
			}
		}
		if st.PodInterfaceName != "" {
			st.InfoSource += ", " + fromMultus
		}
		out = append(out, st)
	}
	for _, a := range r.interfaces {
		if a.Device == "lo" || cardName(cards, a.MAC) != "" {
			continue
		}
		st := kubevirtv1.VirtualMachineInstanceNetworkInterface{MAC: a.MAC, InterfaceName: a.Device, InfoSource: fromAgent, IPs: addressTexts(a.Addresses)}
		if len(st.IPs) > 0 {
			st.IP = st.IPs[0]
		}
		out = append(out, st)
	}
	if reverse {
		slices.Reverse(out)
	}
	return out
}

func agentInterface(r report, mac string) *guest.Interface {
	for i := range r.interfaces {
		if r.interfaces[i].MAC == mac {
			return &r.interfaces[i]
		}
	}
	return nil
}

func addressTexts(addresses []netip.Addr) []string {
	var v4, v6 []string
	for _, a := range addresses {
		switch {
		case !a.IsValid():
		case a.Is4():
			v4 = append(v4, a.String())
		default:
			v6 = append(v6, a.String())
		}
	}
	return append(v4, v6...)
}
