package cloudinit

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"sigs.k8s.io/yaml"
)

// link is the name of the interface in the network data. The guest's own name
// for it differs from image to image, so it is matched by its MAC.
const link = "data-net"

// A Network is how the machine's one interface gets its address.
type Network struct {
	// MAC is the interface's hardware address.
	MAC string
	// Static is nil for DHCP.
	Static *Static
}

// A Static is a fixed address.
type Static struct {
	// Address is the machine's address with the length of its network's prefix.
	Address netip.Prefix
	// Gateway is the default route's next hop.
	Gateway netip.Addr
	// Nameservers are asked in this order.
	Nameservers []netip.Addr
	// SearchDomains complete short names, in this order.
	SearchDomains []string
}

// networkConfig is cloud-init's network configuration, version 2, which is
// netplan's.
type networkConfig struct {
	Version   int                 `json:"version"`
	Ethernets map[string]ethernet `json:"ethernets"`
}

type ethernet struct {
	Match          match        `json:"match"`
	DHCP4          bool         `json:"dhcp4"`
	DHCPIdentifier string       `json:"dhcp-identifier,omitempty"`
	AcceptRA       *bool        `json:"accept-ra,omitempty"`
	Addresses      []string     `json:"addresses,omitempty"`
	Routes         []route      `json:"routes,omitempty"`
	Nameservers    *nameservers `json:"nameservers,omitempty"`
}

type match struct {
	MACAddress string `json:"macaddress"`
}

type route struct {
	To     string `json:"to"`
	Via    string `json:"via"`
	OnLink bool   `json:"on-link,omitempty"`
}

type nameservers struct {
	Addresses []string `json:"addresses,omitempty"`
	Search    []string `json:"search,omitempty"`
}

// NetworkData renders the NoCloud network configuration.
func NetworkData(n Network) ([]byte, error) {
	mac, err := net.ParseMAC(n.MAC)
	if err != nil || len(mac) != 6 {
		return nil, fmt.Errorf("render network data: %q is not a MAC address", n.MAC)
	}
	e := ethernet{Match: match{mac.String()}}
	if n.Static == nil {
		e.DHCP4 = true
		// The default is derived from the machine's id, which a new root disk
		// changes; by the MAC the lease survives it.
		e.DHCPIdentifier = "mac"
	} else if err := n.Static.apply(&e); err != nil {
		return nil, fmt.Errorf("render network data: %w", err)
	}
	out, err := yaml.Marshal(networkConfig{Version: 2, Ethernets: map[string]ethernet{link: e}})
	if err != nil {
		return nil, fmt.Errorf("marshal network data: %w", err)
	}
	return out, nil
}

func (s Static) apply(e *ethernet) error {
	if !s.Address.IsValid() || !s.Gateway.IsValid() || s.Address.Addr().Is4() != s.Gateway.Is4() {
		return errors.New("the static address and the gateway must be of one family")
	}
	everywhere := "0.0.0.0/0"
	if s.Gateway.Is6() {
		everywhere = "::/0"
	}
	// Waiting for router advertisements that never come costs a boot 12 s.
	e.AcceptRA = new(false)
	e.Addresses = []string{s.Address.String()}
	e.Routes = []route{{To: everywhere, Via: s.Gateway.String(), OnLink: !s.Address.Contains(s.Gateway)}}
	e.Nameservers = &nameservers{Search: s.SearchDomains}
	for _, server := range s.Nameservers {
		e.Nameservers.Addresses = append(e.Nameservers.Addresses, server.String())
	}
	for _, domain := range s.SearchDomains {
		if domain == "" || strings.ContainsFunc(domain, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return fmt.Errorf("search domain %q is malformed", domain)
		}
	}
	return nil
}

// ParseNetworkData reads back what NetworkData rendered.
func ParseNetworkData(b []byte) (Network, error) {
	var parsed networkConfig
	if err := yaml.Unmarshal(b, &parsed); err != nil {
		return Network{}, fmt.Errorf("parse network data: %w", err)
	}
	e, ok := parsed.Ethernets[link]
	if !ok || len(parsed.Ethernets) != 1 || parsed.Version != 2 {
		return Network{}, fmt.Errorf("parse network data: it has no single interface %s, so this provider has not made it", link)
	}
	if e.DHCP4 {
		return Network{MAC: e.Match.MACAddress}, nil
	}
	if len(e.Addresses) != 1 || len(e.Routes) != 1 {
		return Network{}, fmt.Errorf("parse network data: found %d addresses and %d routes, not one of each", len(e.Addresses), len(e.Routes))
	}
	static, err := parseStatic(e)
	if err != nil {
		return Network{}, fmt.Errorf("parse network data: %w", err)
	}
	return Network{MAC: e.Match.MACAddress, Static: static}, nil
}

func parseStatic(e ethernet) (*Static, error) {
	address, err := netip.ParsePrefix(e.Addresses[0])
	if err != nil {
		return nil, fmt.Errorf("read address: %w", err)
	}
	gateway, err := netip.ParseAddr(e.Routes[0].Via)
	if err != nil {
		return nil, fmt.Errorf("read gateway: %w", err)
	}
	static := &Static{Address: address, Gateway: gateway}
	if e.Nameservers == nil {
		return static, nil
	}
	static.SearchDomains = e.Nameservers.Search
	for _, text := range e.Nameservers.Addresses {
		server, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("read nameserver: %w", err)
		}
		static.Nameservers = append(static.Nameservers, server)
	}
	return static, nil
}
