package cloudinit_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
)

func TestParseNetworkDataIsExact(t *testing.T) {
	bare := static("192.0.2.10/24", "192.0.2.1")
	bare.SearchDomains = nil
	for name, network := range map[string]cloudinit.Network{
		"DHCP": {MAC: "02:00:00:12:34:56"},
		// YAML 1.1 reads digits with colons as a number of base 60.
		"a MAC of digits":   {MAC: "52:54:00:12:34:56"},
		"static, IPv4":      {MAC: "02:00:00:12:34:56", Static: static("192.0.2.10/24", "192.0.2.1")},
		"static, IPv6":      {MAC: "02:00:00:12:34:56", Static: static("2001:db8::10/64", "2001:db8::1")},
		"no search domains": {MAC: "02:00:00:12:34:56", Static: bare},
		"hostile domains": {MAC: "02:00:00:12:34:56", Static: func() *cloudinit.Static {
			s := static("192.0.2.10/24", "192.0.2.1")
			s.SearchDomains = []string{"no", "1.5", "a:b", `"'$(id)`}
			return s
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := cloudinit.NetworkData(network)
			if err != nil {
				t.Fatal(err)
			}
			got, err := cloudinit.ParseNetworkData(data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(network, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNetworkDataRefuses(t *testing.T) {
	for name, network := range map[string]cloudinit.Network{
		"no MAC":         {},
		"a long MAC":     {MAC: "02:00:00:12:34:56:78:90"},
		"two families":   {MAC: "02:00:00:12:34:56", Static: static("192.0.2.10/24", "2001:db8::1")},
		"no address":     {MAC: "02:00:00:12:34:56", Static: &cloudinit.Static{}},
		"a blank domain": {MAC: "02:00:00:12:34:56", Static: &cloudinit.Static{Address: netip.MustParsePrefix("192.0.2.1/24"), Gateway: netip.MustParseAddr("192.0.2.2"), SearchDomains: []string{"a b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if data, err := cloudinit.NetworkData(network); err == nil {
				t.Errorf("accepted: %s", data)
			}
		})
	}
}

func TestParseNetworkDataRefusesForeignOnes(t *testing.T) {
	for name, data := range map[string]string{
		"nothing":        "",
		"version 1":      "version: 1\nconfig: []\n",
		"another name":   "version: 2\nethernets:\n  eth0:\n    dhcp4: true\n",
		"two interfaces": "version: 2\nethernets:\n  data-net:\n    dhcp4: true\n  eth1:\n    dhcp4: true\n",
		"two addresses":  "version: 2\nethernets:\n  data-net:\n    addresses: [192.0.2.1/24, 192.0.2.2/24]\n",
		"not YAML":       "\tx",
	} {
		t.Run(name, func(t *testing.T) {
			if network, err := cloudinit.ParseNetworkData([]byte(data)); err == nil {
				t.Errorf("accepted: %v", network)
			}
		})
	}
}
