package node

import (
	"hash/crc32"
	"net/netip"
	"sync"
)

// leases give each hardware address an address of the lab's subnet, and the same
// one as long as the agent lives.
type leases struct {
	network byte

	mu    sync.Mutex
	byMAC map[string]netip.Addr
}

// Host numbers that are leased: the host has .1.
const firstHost, lastHost = 10, 250

func newLeases(network int) *leases {
	return &leases{network: byte(network), byMAC: map[string]netip.Addr{}}
}

// of returns the address of mac. The start depends on mac alone, so that a card
// mostly has its old address in a new lab, too.
func (l *leases) of(mac string) netip.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a, ok := l.byMAC[mac]; ok {
		return a
	}
	taken := map[netip.Addr]bool{}
	for _, a := range l.byMAC {
		taken[a] = true
	}
	const hosts = lastHost - firstHost + 1
	start := crc32.ChecksumIEEE([]byte(mac)) % hosts
	var a netip.Addr
	for i := range uint32(hosts) {
		a = netip.AddrFrom4([4]byte{198, 18, l.network, byte(firstHost + (start+i)%hosts)})
		if !taken[a] {
			break
		}
	}
	l.byMAC[mac] = a
	return a
}

// set makes a the address of mac.
func (l *leases) set(mac string, a netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byMAC[mac] = a
}
