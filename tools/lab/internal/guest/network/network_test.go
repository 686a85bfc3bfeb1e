package network

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/insomniacslk/dhcp/dhcpv4"
)

func TestLabsThatStartTogetherClaimDifferentNetworks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("claiming a network makes a bridge, which needs root: in tools/lab, as root: go test ./internal/guest/network")
	}
	const labs = 8
	numbers := make([]int, labs)
	var wait sync.WaitGroup
	for i := range labs {
		wait.Go(func() {
			n, err := Claim("test")
			if err != nil {
				t.Error(err)
			}
			numbers[i] = n
		})
	}
	wait.Wait()
	for _, n := range numbers {
		link, err := net.InterfaceByName(Bridge(n))
		if err != nil {
			t.Errorf("bridge of network %d: %v", n, err)
			continue
		}
		addresses, err := link.Addrs()
		if err != nil || len(addresses) == 0 || addresses[0].String() != Host(n).String()+"/24" {
			t.Errorf("network %d has the addresses %v, %v", n, addresses, err)
		}
		for range 2 { // the second time there is nothing to do
			if err := Release(n); err != nil {
				t.Error(err)
			}
		}
		if _, err := net.InterfaceByName(Bridge(n)); err == nil {
			t.Errorf("bridge %s is still there", Bridge(n))
		}
	}
	slices.Sort(numbers)
	if distinct := len(slices.Compact(numbers)); distinct != labs {
		t.Errorf("%d labs share %d networks", labs, distinct)
	}
}

const card = "52:54:00:00:00:01"

// outcome is what matters of an answer; "" is silence.
type outcome struct{ Kind, Address string }

func ask(t *testing.T, s *Server, mac string, options ...dhcpv4.Modifier) outcome {
	t.Helper()
	hardware, err := net.ParseMAC(mac)
	if err != nil {
		t.Fatal(err)
	}
	request, err := dhcpv4.New(append([]dhcpv4.Modifier{dhcpv4.WithHwAddr(hardware)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := s.reply(request)
	if err != nil {
		t.Fatal(err)
	}
	if reply == nil {
		return outcome{}
	}
	if reply.MessageType() != dhcpv4.MessageTypeNak && reply.Router() != nil {
		t.Error("the answer names a router")
	}
	return outcome{reply.MessageType().String(), reply.YourIPAddr.String()}
}

func TestLeasesGoByHardwareAddress(t *testing.T) {
	s := &Server{network: 7, leases: map[string]netip.Addr{}}
	s.SetLease("52:54:00:00:00:01", netip.MustParseAddr("198.18.7.10"))
	discover := dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover)
	request := dhcpv4.WithMessageType(dhcpv4.MessageTypeRequest)
	own := net.IPv4(198, 18, 7, 10)
	foreign := dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(198, 18, 7, 99)))
	got := map[string]outcome{
		"known discovers":   ask(t, s, card, discover),
		"unknown discovers": ask(t, s, "52:54:00:00:00:02", discover),
		"asks for its own":  ask(t, s, card, request, dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(own))),
		"renews its own":    ask(t, s, card, request, dhcpv4.WithClientIP(own)),
		"another server's":  ask(t, s, card, request, foreign, dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(own))),
	}
	s.SetLease("52:54:00:00:00:01", netip.MustParseAddr("198.18.7.11"))
	got["renews the old one"] = ask(t, s, card, request, dhcpv4.WithClientIP(own))
	got["discovers again"] = ask(t, s, card, discover)
	want := map[string]outcome{
		"known discovers":    {"OFFER", "198.18.7.10"},
		"unknown discovers":  {},
		"asks for its own":   {"ACK", "198.18.7.10"},
		"renews its own":     {"ACK", "198.18.7.10"},
		"another server's":   {},
		"renews the old one": {"NAK", "0.0.0.0"},
		"discovers again":    {"OFFER", "198.18.7.11"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
