// Package container boots guests as systemd-nspawn containers: the image's own
// systemd, cloud-init and PostgreSQL, without a kernel of their own.
//
// A guest differs from a machine in this: its page cache and its /sys are the
// host's; it has no udev (RESIZE rules are run by this package, no others); its
// root disk has no size; the file systems it mounted grow online only where this
// process has CAP_SYS_RESOURCE.
//
// Everything a guest needs of the host is tied to its processes – anonymous
// mount and network namespaces, loop devices that clear themselves, a signal
// for the parent's death – so that a killed lab leaves empty folders only.
package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/image"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/network"
)

// Backend implements guest.Backend.
type Backend struct {
	options guest.Options
	image   *image.Image
	dhcp    *network.Server

	mu       sync.Mutex
	machines map[*machine]struct{}
	started  int // numbers the links
	closed   bool
}

var _ guest.Backend = (*Backend)(nil)

// New builds the image if there is none yet and serves the network, whose
// number was claimed before.
func New(ctx context.Context, o guest.Options) (*Backend, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("start container guests: they need root; use the guest sim")
	}
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
	if _, err := nspawn(o.Cache); err != nil {
		return nil, err
	}
	img, err := image.Ensure(ctx, image.Request{Cache: o.Cache, Variant: variant, Log: o.Log})
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(o.Dir, "volumes"), 0o755); err != nil {
		return nil, fmt.Errorf("create volumes folder: %w", err)
	}
	if err := Sweep(o.Network); err != nil {
		return nil, err
	}
	dhcp, err := network.Serve(o.Network)
	if err != nil {
		return nil, err
	}
	return &Backend{options: o, image: img, dhcp: dhcp, machines: map[*machine]struct{}{}}, nil
}

// SetLease implements guest.Backend.
func (b *Backend) SetLease(mac string, address netip.Addr) { b.dhcp.SetLease(mac, address) }

// Boot implements guest.Backend.
func (b *Backend) Boot(ctx context.Context, s guest.Spec) (guest.Machine, error) {
	for _, nic := range s.NICs {
		if nic.Address.IsValid() {
			b.SetLease(nic.MAC, nic.Address)
		}
	}
	m, err := b.prepare(s)
	if err != nil {
		return nil, fmt.Errorf("boot %s/%s: %w", s.Namespace, s.Name, err)
	}
	if err := m.boot(ctx); err != nil {
		b.forget(m)
		return nil, fmt.Errorf("boot %s/%s: %w", s.Namespace, s.Name, err)
	}
	return m, nil
}

// Close implements guest.Backend. The bridge belongs to whoever claimed it.
func (b *Backend) Close() error {
	b.mu.Lock()
	b.closed = true
	var running []*machine
	for m := range b.machines {
		running = append(running, m)
	}
	b.mu.Unlock()
	var problems []error
	for _, m := range running {
		problems = append(problems, m.Kill())
	}
	for _, m := range running {
		<-m.ended
	}
	return errors.Join(append(problems, b.dhcp.Close())...)
}

func (b *Backend) forget(m *machine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.machines, m)
}

// prepare makes the machine's folder and gives it its numbers.
func (b *Backend) prepare(s guest.Spec) (*machine, error) {
	folder := filepath.Join(b.options.Dir, "guests", s.UID)
	if err := os.MkdirAll(filepath.Join(folder, "root"), 0o755); err != nil {
		return nil, fmt.Errorf("create machine folder: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errors.New("the lab is closing")
	}
	m := &machine{backend: b, spec: s, folder: folder, done: make(chan guest.Exit, 1), ended: make(chan struct{})}
	for range s.NICs {
		b.started++
		m.links = append(m.links, fmt.Sprintf("%sg%d", network.Bridge(b.options.Network), b.started))
	}
	b.machines[m] = struct{}{}
	return m, nil
}
