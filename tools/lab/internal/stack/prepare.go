package stack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/image"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/network"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/pki"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/state"
)

// prepare does everything that comes before the first process.
func (s *Stack) prepare(ctx context.Context, kind guest.Kind) error {
	if err := s.packages(ctx, kind); err != nil {
		return err
	}
	if err := s.image(ctx, kind); err != nil {
		return err
	}
	if err := s.build(ctx); err != nil {
		return err
	}
	if err := s.ensureTemplate(ctx); err != nil {
		return err
	}
	if err := s.newLab(ctx, kind); err != nil {
		return err
	}
	for file, to := range map[string]struct{ user, port, namespace string }{
		s.dir.Kubeconfig():       {"admin", "apiserver", "default"},
		s.dir.TenantKubeconfig(): {"tenant", "apiserver", "tenant-acme"},
		s.dir.ProxyKubeconfig():  {"tenant", "proxy", "tenant-acme"},
	} {
		if err := pki.Kubeconfig(s.dir.PKI(""), to.user, s.lab.URL(to.port), to.namespace, file); err != nil {
			return err
		}
	}
	return nil
}

// packages runs tools/lab/packages.sh.
func (s *Stack) packages(ctx context.Context, kind guest.Kind) error {
	script := filepath.Join(s.root, "tools", "lab", "packages.sh")
	if _, err := os.Stat(script); err != nil {
		return fmt.Errorf("find the repository: %w; name its folder with -root", err)
	}
	cmd := exec.CommandContext(ctx, script, s.cache, string(kind))
	cmd.Stdout, cmd.Stderr = s.out, s.out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("get the host's packages: %w", err)
	}
	return nil
}

// image builds the guest image, which the node agent would otherwise do unseen.
func (s *Stack) image(ctx context.Context, kind guest.Kind) error {
	if kind == guest.Sim {
		return nil
	}
	variant, err := image.ParseVariant(os.Getenv("LAB_IMAGE"))
	if err != nil {
		return err
	}
	if _, err = image.Ensure(ctx, image.Request{Cache: s.cache, Variant: variant, Disk: kind == guest.VM, Log: s.out}); err != nil {
		return fmt.Errorf("build the guest image: %w", err)
	}
	return nil
}

// newLab takes ports and a network, records them, and makes keys and tokens.
func (s *Stack) newLab(ctx context.Context, kind guest.Kind) error {
	ports, err := state.NewPorts(ctx)
	if err != nil {
		return err
	}
	s.lab = &state.Lab{Guest: string(kind), Ports: ports}
	if kind != guest.Sim {
		// A simulated guest has no link, so any number will do for its addresses.
		if s.lab.Network, err = network.Claim(string(s.dir)); err != nil {
			return err
		}
	}
	if err := s.dir.Save(s.lab); err != nil {
		return err
	}
	if err := pki.Create(s.dir.PKI("")); err != nil {
		return fmt.Errorf("make certificates: %w", err)
	}
	if err := pki.CreateUsers(s.dir.PKI(""), s.lab.URL("apiserver")); err != nil {
		return fmt.Errorf("make users: %w", err)
	}
	return nil
}
