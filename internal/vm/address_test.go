package vm_test

import (
	"testing"

	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

func TestAddress(t *testing.T) {
	type nic = kubevirtv1.VirtualMachineInstanceNetworkInterface
	for name, test := range map[string]struct {
		nics []nic
		want string
	}{
		"none yet":                        {nil, ""},
		"no address yet":                  {[]nic{{Name: "data-net"}}, ""},
		"the one":                         {[]nic{{Name: "data-net", IP: "198.18.1.10", IPs: []string{"198.18.1.10"}}}, "198.18.1.10"},
		"another interface first":         {[]nic{{Name: "mgmt", IP: "10.1.1.1", IPs: []string{"10.1.1.1"}}, {Name: "data-net", IP: "198.18.1.10"}}, "198.18.1.10"},
		"only on another interface":       {[]nic{{Name: "mgmt", IP: "10.1.1.1"}, {IP: "10.1.1.2", InterfaceName: "docker0"}}, ""},
		"link-local IPv4":                 {[]nic{{Name: "data-net", IP: "169.254.3.4"}}, ""},
		"link-local IPv6":                 {[]nic{{Name: "data-net", IP: "fe80::1"}}, ""},
		"link-local before the right one": {[]nic{{Name: "data-net", IP: "fe80::1", IPs: []string{"fe80::1", "198.18.1.10"}}}, "198.18.1.10"},
		"KubeVirt's masquerade address":   {[]nic{{Name: "data-net", IP: "10.0.2.2"}}, ""},
		"loopback":                        {[]nic{{Name: "data-net", IP: "127.0.0.1", IPs: []string{"127.0.0.1", "::1"}}}, ""},
		"IPv6 only":                       {[]nic{{Name: "data-net", IP: "2001:db8::7", IPs: []string{"2001:db8::7", "fe80::1"}}}, "2001:db8::7"},
		"IPv4 before IPv6":                {[]nic{{Name: "data-net", IP: "2001:db8::7", IPs: []string{"2001:db8::7", "198.18.1.10"}}}, "198.18.1.10"},
		"order of the guest, IPv4":        {[]nic{{Name: "data-net", IPs: []string{"198.18.1.20", "198.18.1.10"}}}, "198.18.1.20"},
		"order of the guest, IPv6":        {[]nic{{Name: "data-net", IPs: []string{"2001:db8::9", "2001:db8::7"}}}, "2001:db8::9"},
		"IPv6 in long form":               {[]nic{{Name: "data-net", IP: "2001:0db8:0::0007"}}, "2001:db8::7"},
		"not an address":                  {[]nic{{Name: "data-net", IP: "pending", IPs: []string{"pending", ""}}}, ""},
		"with a prefix length":            {[]nic{{Name: "data-net", IP: "198.18.1.10/24"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			i := &kubevirtv1.VirtualMachineInstance{}
			i.Status.Interfaces = test.nics
			if got := vm.Address(i); got != test.want {
				t.Errorf("Address = %q, want %q", got, test.want)
			}
		})
	}
	if got := vm.Address(nil); got != "" {
		t.Errorf("Address without an instance = %q, want none", got)
	}
}
