// Package vm boots guests as virtual machines with QEMU: with the kernel, udev,
// disks and power cuts that the container guests do not have.
//
// Without a CPU that can virtualize QEMU emulates one, and a boot takes minutes.
package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

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
		return nil, errors.New("start virtual machines: they need root; use the guest sim")
	}
	for _, program := range []string{"qemu-system-x86_64", "qemu-img", "genisoimage"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("start virtual machines: %w", err)
		}
	}
	h, err := host.Open(ctx, o, true)
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
		return nil, fmt.Errorf("boot %s/%s: %w", s.Namespace, s.Name, err)
	}
	return m, nil
}
