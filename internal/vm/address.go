package vm

import (
	"net/netip"

	kubevirtv1 "kubevirt.io/api/core/v1"
)

// masquerade is the address that KubeVirt's masquerade binding gives every
// guest: it is true inside one pod only.
const masquerade = "10.0.2.2"

// Address returns the database's address: of the data interface only, IPv4
// before IPv6, else in the order the guest reports, "" if there is none yet.
func Address(i *kubevirtv1.VirtualMachineInstance) string {
	if i == nil {
		return ""
	}
	var sixth string
	for _, nic := range i.Status.Interfaces {
		if nic.Name != DataNetwork {
			continue
		}
		for _, text := range append([]string{nic.IP}, nic.IPs...) {
			a, err := netip.ParseAddr(text)
			if err != nil || !reachable(a) {
				continue
			}
			if a = a.Unmap(); a.Is4() {
				return a.String()
			}
			if sixth == "" {
				sixth = a.String()
			}
		}
	}
	return sixth
}

// reachable says whether clients elsewhere can use the address.
func reachable(a netip.Addr) bool {
	a = a.Unmap()
	return a.Zone() == "" && a.IsGlobalUnicast() && a.String() != masquerade
}
