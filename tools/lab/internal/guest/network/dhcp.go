package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/server4"
)

// A guest asks again after renewal, so that it takes a new address within
// seconds; the lease itself lasts longer, because an emulated guest may be slow.
const (
	renewal = 4 * time.Second
	rebind  = 30 * time.Second
	lease   = 60 * time.Second
)

// A Server leases addresses on one network, by hardware address and to nobody
// it was not told of. It names no router and no name server: there is no way out.
type Server struct {
	network int
	server  *server4.Server
	done    chan struct{}

	mu     sync.Mutex
	leases map[string]netip.Addr
}

// Serve starts the DHCP server of network n, whose bridge exists.
func Serve(n int) (*Server, error) {
	s := &Server{network: n, done: make(chan struct{}), leases: map[string]netip.Addr{}}
	server, err := server4.NewServer(Bridge(n), &net.UDPAddr{Port: dhcpv4.ServerPort}, s.handle)
	if err != nil {
		return nil, fmt.Errorf("listen for dhcp on %s: %w", Bridge(n), err)
	}
	s.server = server
	go func() {
		defer close(s.done)
		_ = server.Serve() // returns when Close closes the socket
	}()
	return s, nil
}

// SetLease gives address to mac from now on. A guest that holds another one is
// refused its renewal and asks anew.
func (s *Server) SetLease(mac string, address netip.Addr) {
	parsed, err := net.ParseMAC(mac)
	if err != nil {
		return // such a card cannot ask either
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases[parsed.String()] = address
}

// Close stops the server.
func (s *Server) Close() error {
	err := s.server.Close()
	<-s.done
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (s *Server) handle(conn net.PacketConn, peer net.Addr, request *dhcpv4.DHCPv4) {
	reply, err := s.reply(request)
	if err != nil || reply == nil {
		return
	}
	_, _ = conn.WriteTo(reply.ToBytes(), peer) // a lost answer is asked for again
	if reply.MessageType() == dhcpv4.MessageTypeNak {
		// The standard broadcasts a refusal. A guest that renews listens on its
		// own address only, which has just been served; one that reboots may not.
		_, _ = conn.WriteTo(reply.ToBytes(), &net.UDPAddr{IP: net.IPv4bcast, Port: dhcpv4.ClientPort})
	}
}

// reply is nil where the server has to be silent.
func (s *Server) reply(request *dhcpv4.DHCPv4) (*dhcpv4.DHCPv4, error) {
	s.mu.Lock()
	address, known := s.leases[request.ClientHWAddr.String()]
	s.mu.Unlock()
	if request.OpCode != dhcpv4.OpcodeBootRequest || !known || !address.Is4() {
		return nil, nil
	}
	host := net.IP(Host(s.network).AsSlice())
	if other := request.ServerIdentifier(); other != nil && !other.Equal(host) {
		return nil, nil
	}
	own := net.IP(address.AsSlice())
	kind := dhcpv4.MessageTypeOffer
	switch request.MessageType() {
	case dhcpv4.MessageTypeDiscover:
	case dhcpv4.MessageTypeRequest:
		kind = dhcpv4.MessageTypeAck
		wanted := request.RequestedIPAddress()
		if wanted == nil || wanted.IsUnspecified() {
			wanted = request.ClientIPAddr
		}
		if !wanted.Equal(own) {
			return dhcpv4.NewReplyFromRequest(request, dhcpv4.WithMessageType(dhcpv4.MessageTypeNak),
				dhcpv4.WithServerIP(host), dhcpv4.WithOption(dhcpv4.OptServerIdentifier(host)))
		}
	default:
		return nil, nil
	}
	return dhcpv4.NewReplyFromRequest(request, dhcpv4.WithMessageType(kind),
		dhcpv4.WithYourIP(own), dhcpv4.WithServerIP(host),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(host)),
		dhcpv4.WithNetmask(net.CIDRMask(Prefix(s.network).Bits(), 32)),
		dhcpv4.WithLeaseTime(uint32(lease.Seconds())),
		dhcpv4.WithOption(dhcpv4.OptRenewTimeValue(renewal)),
		dhcpv4.WithOption(dhcpv4.OptRebindingTimeValue(rebind)))
}
