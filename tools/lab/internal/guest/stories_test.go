package guest_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/container"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/network"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/sample"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/vm"
)

const (
	gib    = int64(1) << 30
	mac    = "52:54:00:12:34:56"
	serial = "pgdata"
)

// site is a claimed network with a Backend on it, and what its guests are given.
type site struct {
	guest.Backend
	kind     guest.Kind
	dir      string
	network  int
	document sample.Document
}

// newSite starts a Backend of its own for a test. It skips where that cannot be.
func newSite(t *testing.T, kind guest.Kind, variant string) *site {
	t.Helper()
	require(t, kind)
	s := &site{kind: kind, dir: t.TempDir()}
	s.document = sample.New(t, s.dir)
	n, err := network.Claim(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	s.network = n
	t.Cleanup(func() {
		if err := network.Release(n); err != nil {
			t.Error(err)
		}
	})
	s.Backend, err = open(t.Context(), kind, options(s.dir, n, variant))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func options(dir string, n int, variant string) guest.Options {
	cache, err := os.UserCacheDir()
	if err != nil {
		panic(err)
	}
	return guest.Options{
		Dir: dir, Cache: filepath.Join(cache, "terraform-provider-dbaas", "lab"), Network: n, Image: variant,
		PackageProxy: netip.AddrPortFrom(network.Host(n), proxyPort), Log: os.Stderr,
	}
}

func open(ctx context.Context, kind guest.Kind, o guest.Options) (guest.Backend, error) {
	if kind == guest.VM {
		return vm.New(ctx, o)
	}
	return container.New(ctx, o)
}

func require(t *testing.T, kind guest.Kind) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a guest needs root (mounts, links, loop devices): in tools/lab, as root: go test ./internal/guest")
	}
	if kind == guest.VM && os.Getenv("LAB_TEST_VM") == "" {
		t.Skip("a virtual machine boots for minutes without KVM: make test-vm, or in tools/lab LAB_TEST_VM=1 go test -timeout 60m -run VM ./internal/guest")
	}
}

// spec is a machine with a root disk and the data disk, by the names of their volumes.
func (s *site) spec(uid, root, data string) guest.Spec {
	address := network.Host(s.network)
	for range 9 {
		address = address.Next()
	}
	return guest.Spec{
		Namespace: "tenant-acme", Name: "pg-1", UID: uid, VCPU: 2, MemoryMiB: 1024,
		Disks: []guest.Disk{
			{Name: "root", Volume: root, Boot: true},
			{Name: "data", Volume: data, Serial: serial},
		},
		NICs: []guest.NIC{{Name: "default", MAC: mac, Address: address}},
		Seed: &guest.Seed{
			InstanceID: "00000000-0000-5000-8000-000000000001", Hostname: "pg-1", UserData: s.document.UserData,
			NetworkData: []byte("version: 2\nethernets:\n  primary:\n    match: {macaddress: \"" + mac +
				"\"}\n    dhcp4: true\n    dhcp-identifier: mac\n"),
		},
	}
}

func (s *site) volumes(t *testing.T, root, data string) {
	t.Helper()
	for _, v := range []guest.Volume{{Name: root, Bytes: 3 * gib, FromImage: true}, {Name: data, Bytes: gib}} {
		if err := s.EnsureVolume(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *site) boot(t *testing.T, spec guest.Spec) guest.Machine {
	t.Helper()
	m, err := s.Boot(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// until repeats what until it returns no error, or fails the test with the last.
func until(t *testing.T, m guest.Machine, what func() error) {
	t.Helper()
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute) // an emulated guest on a busy machine
	defer cancel()
	for {
		err := what()
		if err == nil {
			t.Logf("after %.1f s", time.Since(start).Seconds())
			return
		}
		select {
		case exit := <-m.Done():
			t.Fatalf("the guest ended: %+v\n%s", exit, console(m))
		case <-ctx.Done():
			t.Fatalf("still: %v\n%s", err, console(m))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s *site) answers(t *testing.T, m guest.Machine, address netip.Addr, sql, want string) {
	t.Helper()
	until(t, m, func() error {
		got, err := s.document.Query(t.Context(), address, sql)
		if err == nil && got != want {
			err = fmt.Errorf("%s: got %q, want %q", sql, got, want)
		}
		return err
	})
}

func inside(t *testing.T, m guest.Machine, command ...string) string {
	t.Helper()
	code, output, err := m.Exec(t.Context(), command)
	if err != nil || code != 0 {
		t.Fatalf("%v in the guest: exit %d, %v\n%s", command, code, err, output)
	}
	return strings.TrimSpace(output)
}

func ended(t *testing.T, m guest.Machine) guest.Exit {
	t.Helper()
	select {
	case exit := <-m.Done():
		return exit
	case <-time.After(5 * time.Minute):
		t.Fatalf("the guest does not end\n%s", console(m))
		return guest.Exit{}
	}
}

func console(m guest.Machine) string {
	content, err := os.ReadFile(m.ConsoleLog())
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-3000):])
}
