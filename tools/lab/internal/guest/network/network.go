// Package network is the one network of a lab's guests: a bridge of the host
// with a subnet of its own and no way out, and the DHCP server on it.
package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
)

// networks is how many subnets 198.18.N.0/24 are tried.
const networks = 254

// Bridge is the name of network n's bridge. Every link of the network starts
// with it, followed by "g" and a number.
func Bridge(n int) string { return fmt.Sprintf("dbaaslab%d", n) }

// Prefix is network n's subnet. 198.18.0.0/15 is set aside for tests by RFC 2544.
func Prefix(n int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, byte(n), 0}), 24)
}

// Host is the host's address on network n.
func Host(n int) netip.Addr { return Prefix(n).Addr().Next() }

// Claim takes the first free network for the lab in folder dir and returns its
// number. Creating the bridge is what claims it, so that labs which start at the
// same moment cannot take the same one.
func Claim(dir string) (int, error) {
	for n := 1; n <= networks; n++ {
		err := create(n, dir)
		if errors.Is(err, syscall.EEXIST) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("create bridge %s: %w", Bridge(n), err)
		}
		return n, nil
	}
	return 0, fmt.Errorf("claim a network: all %d are taken; see `ip link show type bridge`", networks)
}

// Release gives network n back: its bridge and all links of its guests.
// A network that is not there is no error.
func Release(n int) error {
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("list links: %w", err)
	}
	ours := regexp.MustCompile(fmt.Sprintf(`^%s(g[0-9]+)?$`, Bridge(n)))
	var problems []error
	for _, link := range links {
		if !ours.MatchString(link.Attrs().Name) {
			continue
		}
		// A link may go by itself meanwhile, with its guest's namespace.
		if err := netlink.LinkDel(link); err != nil && !gone(err) {
			problems = append(problems, fmt.Errorf("delete link %s: %w", link.Attrs().Name, err))
		}
	}
	return errors.Join(problems...)
}

// Attach makes the link a port of network n's bridge and brings it up.
func Attach(n int, link string) error {
	bridge, err := netlink.LinkByName(Bridge(n))
	if err != nil {
		return fmt.Errorf("find bridge %s: %w", Bridge(n), err)
	}
	port, err := netlink.LinkByName(link)
	if err != nil {
		return fmt.Errorf("find link %s: %w", link, err)
	}
	if err := netlink.LinkSetMasterByIndex(port, bridge.Attrs().Index); err != nil {
		return fmt.Errorf("attach %s to %s: %w", link, Bridge(n), err)
	}
	if err := netlink.LinkSetUp(port); err != nil {
		return fmt.Errorf("bring up %s: %w", link, err)
	}
	return nil
}

// A Veth is a pair of links: Link on the bridge, Device in the guest.
type Veth struct {
	// Link is the name on the host's side.
	Link string
	// Device and MAC are name and hardware address on the guest's side.
	Device, MAC string
	// PID is a process in the guest's network namespace.
	PID int
}

// AddVeth creates the pair on network n. It goes with the guest's namespace.
func AddVeth(n int, v Veth) error {
	mac, err := net.ParseMAC(v.MAC)
	if err != nil {
		return fmt.Errorf("parse mac: %w", err)
	}
	pair := netlink.NewVeth(netlink.NewLinkAttrs())
	pair.Name = v.Link
	pair.PeerName = v.Device
	pair.PeerHardwareAddr = mac
	pair.PeerNamespace = netlink.NsPid(v.PID)
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("create link %s: %w", v.Link, err)
	}
	return Attach(n, v.Link)
}

// Delete removes a link; a missing one is no error.
func Delete(name string) error {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil && !gone(err) {
		return fmt.Errorf("delete link %s: %w", name, err)
	}
	return nil
}

func create(n int, dir string) error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = Bridge(n)
	bridge := &netlink.Bridge{LinkAttrs: attributes}
	if err := netlink.LinkAdd(bridge); err != nil {
		return err
	}
	address := &netlink.Addr{IPNet: &net.IPNet{IP: Host(n).AsSlice(), Mask: net.CIDRMask(Prefix(n).Bits(), 32)}}
	err := errors.Join(
		netlink.LinkSetAlias(bridge, "lab "+dir), // for whoever finds it left behind
		netlink.AddrAdd(bridge, address),
		netlink.LinkSetUp(bridge),
	)
	if err != nil {
		return errors.Join(err, netlink.LinkDel(bridge))
	}
	return nil
}

func gone(err error) bool {
	var missing netlink.LinkNotFoundError
	return errors.As(err, &missing) || errors.Is(err, syscall.ENODEV) ||
		strings.Contains(err.Error(), "Link not found")
}
