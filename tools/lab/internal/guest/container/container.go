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
	"os"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/host"
)

// Backend implements guest.Backend.
type Backend struct{ *host.Host }

var _ guest.Backend = (*Backend)(nil)

// New builds the image if there is none yet and serves the network, whose
// number was claimed before.
func New(ctx context.Context, o guest.Options) (*Backend, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("start container guests: they need root; use the guest sim")
	}
	if _, err := nspawn(o.Cache); err != nil {
		return nil, err
	}
	if err := Sweep(o.Network); err != nil {
		return nil, err
	}
	h, err := host.Open(ctx, o, false)
	if err != nil {
		return nil, err
	}
	return &Backend{Host: h}, nil
}

// Boot implements guest.Backend.
func (b *Backend) Boot(ctx context.Context, s guest.Spec) (guest.Machine, error) {
	place, err := b.Place(s)
	if err != nil {
		return nil, fmt.Errorf("boot %s/%s: %w", s.Namespace, s.Name, err)
	}
	m := &machine{Machine: place, backend: b}
	if err := m.boot(ctx); err != nil {
		m.Forget()
		return nil, fmt.Errorf("boot %s/%s: %w", s.Namespace, s.Name, err)
	}
	return m, nil
}
