// Package host is what guests that boot have in common on this machine: the
// image, the folder of volumes, the network, and the record of those that run.
package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/image"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/network"
)

// A Host keeps the guests of one lab.
type Host struct {
	Options guest.Options
	Image   *image.Image

	dhcp *network.Server

	mu      sync.Mutex
	running map[*Machine]guest.Machine
	started int // numbers the links
	closed  bool
}

// Open builds the image if there is none yet, with a bootable disk if asked for,
// and serves the network, whose number was claimed before.
func Open(ctx context.Context, o guest.Options, disk bool) (*Host, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("find lab folder: %w", err)
	}
	o.Dir = dir
	variant, err := image.ParseVariant(o.Image)
	if err != nil {
		return nil, err
	}
	img, err := image.Ensure(ctx, image.Request{Cache: o.Cache, Variant: variant, Disk: disk, Log: o.Log})
	if err != nil {
		return nil, err
	}
	h := &Host{Options: o, Image: img, running: map[*Machine]guest.Machine{}}
	if err := os.MkdirAll(h.Volume(""), 0o755); err != nil {
		return nil, fmt.Errorf("create volumes folder: %w", err)
	}
	h.dhcp, err = network.Serve(o.Network)
	return h, err
}

// Volume is the path of a file or folder in the folder of volumes.
func (h *Host) Volume(name string) string { return filepath.Join(h.Options.Dir, "volumes", name) }

// SetLease implements guest.Backend.
func (h *Host) SetLease(mac string, address netip.Addr) { h.dhcp.SetLease(mac, address) }

// Close implements guest.Backend. The bridge belongs to whoever claimed it.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	running := maps.Clone(h.running)
	h.mu.Unlock()
	var problems []error
	for _, g := range running {
		problems = append(problems, g.Kill())
	}
	for m := range running {
		<-m.ended
	}
	return errors.Join(append(problems, h.dhcp.Close())...)
}

// User is the guest that runs with the volume, nil if none does.
func (h *Host) User(volume string) guest.Machine {
	h.mu.Lock()
	defer h.mu.Unlock()
	for m, g := range h.running {
		for _, disk := range m.Spec.Disks {
			if disk.Volume == volume {
				return g
			}
		}
	}
	return nil
}

// A Machine is a guest's place on the host.
type Machine struct {
	Spec guest.Spec
	// Folder is the guest's own, below the lab's.
	Folder string
	// Links are the host's names of its network cards, in their order.
	Links []string

	host  *Host
	done  chan guest.Exit
	ended chan struct{} // closed after done was served
	gone  sync.Once
}

// Place makes the machine's folder, gives its cards their links and leases
// their addresses. Whoever boots it registers it first.
func (h *Host) Place(s guest.Spec) (*Machine, error) {
	m := &Machine{
		Spec: s, Folder: filepath.Join(h.Options.Dir, "guests", s.UID),
		host: h, done: make(chan guest.Exit, 1), ended: make(chan struct{}),
	}
	if err := os.MkdirAll(m.Folder, 0o755); err != nil {
		return nil, fmt.Errorf("create machine folder: %w", err)
	}
	for _, nic := range s.NICs {
		if nic.Address.IsValid() {
			h.SetLease(nic.MAC, nic.Address)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for range s.NICs {
		h.started++
		m.Links = append(m.Links, fmt.Sprintf("%sg%d", network.Bridge(h.Options.Network), h.started))
	}
	return m, nil
}

// Register counts the guest among those that run.
func (m *Machine) Register(g guest.Machine) error {
	m.host.mu.Lock()
	defer m.host.mu.Unlock()
	if m.host.closed {
		return errors.New("the lab is closing")
	}
	m.host.running[m] = g
	return nil
}

// Forget takes back Register for a guest that did not start.
func (m *Machine) Forget() {
	m.host.mu.Lock()
	delete(m.host.running, m)
	m.host.mu.Unlock()
	m.gone.Do(func() { close(m.ended) })
}

// End tells that the guest ended, of which nothing is left.
func (m *Machine) End(exit guest.Exit) {
	m.done <- exit
	m.Forget()
}

// ConsoleLog implements guest.Machine.
func (m *Machine) ConsoleLog() string { return filepath.Join(m.Folder, "console.log") }

// Done implements guest.Machine.
func (m *Machine) Done() <-chan guest.Exit { return m.done }

// Ended is closed once Done was served.
func (m *Machine) Ended() <-chan struct{} { return m.ended }
