package guest_test

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
)

func TestContainerLife(t *testing.T) { life(t, newSite(t, guest.Container, "baked")) }

func TestVMLife(t *testing.T) { life(t, newSite(t, guest.VM, "baked")) }

// life tells a machine's life as the node agent leads it; each step needs the
// one before.
func life(t *testing.T, s *site) {
	s.volumes(t, "root-1", "data")
	spec := s.spec("uid-1", "root-1", "data")
	m := s.boot(t, spec)
	firstBoot(t, s, m, spec.NICs[0].Address)
	address := whileRunning(t, s, m, spec.NICs[0].Address)
	reboots(t, s, m, address)
	spec.NICs[0].Address = address
	m = newStarts(t, s, m, spec)
	step(t, "a guest that powers itself off did not fail", func(t *testing.T) {
		inside(t, m, "systemctl", "--no-block", "poweroff")
		if exit := ended(t, m); exit.Failed {
			t.Errorf("got %+v", exit)
		}
	})
	step(t, "nothing is left", func(t *testing.T) {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		nothingLeft(t, s.dir, s.network)
	})
}

func firstBoot(t *testing.T, s *site, m guest.Machine, address netip.Addr) {
	step(t, "the user data makes a PostgreSQL that answers over TLS", func(t *testing.T) {
		s.answers(t, m, address, "select ssl from pg_stat_ssl where pid = pg_backend_pid()", "t")
		s.answers(t, m, address, "create table kept(i int); insert into kept values (1), (2); select count(*) from kept", "2")
		consoleSays(t, m, "lab: state=ready")
	})
	step(t, "the agent runs commands and tells the addresses", func(t *testing.T) {
		code, output, err := m.Exec(t.Context(), []string{"sh", "-c", "echo out; echo err >&2; exit 3"})
		if err != nil || code != 3 || !strings.Contains(output, "out") || !strings.Contains(output, "err") {
			t.Errorf("exit %d, output %q, %v", code, output, err)
		}
		reports(t, m, address.String())
	})
	step(t, "the guest has the memory that was asked for", func(t *testing.T) {
		var kib int
		if _, err := fmt.Sscanf(inside(t, m, "head", "-1", "/proc/meminfo"), "MemTotal: %d", &kib); err != nil {
			t.Fatal(err)
		}
		if mib := kib / 1024; mib < 900 || mib > 1024 {
			t.Errorf("the guest has %d MiB of 1024", mib)
		}
	})
}

// whileRunning changes a running machine; it returns its new address.
func whileRunning(t *testing.T, s *site, m guest.Machine, address netip.Addr) netip.Addr {
	step(t, "a volume grows under the running guest", func(t *testing.T) { grow(t, s, m) })
	step(t, "a new lease is taken without a restart", func(t *testing.T) {
		address = address.Next()
		s.SetLease(mac, address)
		s.answers(t, m, address, "select count(*) from kept", "2")
		reports(t, m, address.String())
	})
	return address
}

func reboots(t *testing.T, s *site, m guest.Machine, address netip.Addr) {
	for name, reboot := range map[string]func(t *testing.T){
		"a reboot from outside": func(t *testing.T) {
			if err := m.Reboot(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"a reboot from inside": func(t *testing.T) { inside(t, m, "systemctl", "--no-block", "reboot") },
	} {
		step(t, name+" goes through and keeps the machine", func(t *testing.T) {
			inside(t, m, "touch", "/run/before")
			reboot(t)
			until(t, m, func() error { return rebooted(t, m) })
			s.answers(t, m, address, "select count(*) from kept", "2")
		})
	}
}

// newStarts ends the machine in two ways and returns the one that runs after.
func newStarts(t *testing.T, s *site, m guest.Machine, spec guest.Spec) guest.Machine {
	step(t, "after a power cut committed rows are there", func(t *testing.T) {
		s.answers(t, m, spec.NICs[0].Address, "insert into kept values (3); select count(*) from kept", "3")
		if err := m.Kill(); err != nil {
			t.Fatal(err)
		}
		if exit := ended(t, m); exit.Failed {
			t.Errorf("a power cut is no crash: %+v", exit)
		}
		spec.UID = "uid-2"
		m = s.boot(t, spec)
		s.answers(t, m, spec.NICs[0].Address, "select count(*) from kept", "3")
	})
	step(t, "a new root disk takes the kept data disk", func(t *testing.T) {
		if err := m.Shutdown(t.Context(), 5*time.Minute); err != nil {
			t.Fatal(err)
		}
		if exit := ended(t, m); exit.Failed || strings.Contains(exit.Reason, ";") {
			t.Errorf("a shutdown is no crash: %+v", exit)
		}
		if err := s.DeleteVolume(t.Context(), "root-1"); err != nil {
			t.Fatal(err)
		}
		s.volumes(t, "root-2", "data")
		spec = s.spec("uid-3", "root-2", "data")
		m = s.boot(t, spec)
		s.answers(t, m, spec.NICs[0].Address, "select count(*) from kept", "3")
	})
	return m
}

// step stops the story at the first step that fails.
func step(t *testing.T, name string, run func(*testing.T)) {
	t.Helper()
	if !t.Run(name, run) {
		t.FailNow()
	}
}

func grow(t *testing.T, s *site, m guest.Machine) {
	if err := s.EnsureVolume(t.Context(), guest.Volume{Name: "data", Bytes: 2 * gib}); err != nil {
		t.Fatal(err)
	}
	until(t, m, func() error {
		if got := inside(t, m, "blockdev", "--getsize64", "/dev/disk/by-id/virtio-"+serial); got != fmt.Sprint(2*gib) {
			return fmt.Errorf("the guest's disk has %s bytes", got)
		}
		_, _, err := m.Exec(t.Context(), []string{"test", "-e", "/run/lab-grow"})
		return err
	})
	if s.kind == guest.Container && !canResize(t) {
		t.Log("the file system is not looked at: this host's root lacks CAP_SYS_RESOURCE, without which no ext4 grows online")
		return
	}
	until(t, m, func() error {
		var kib int64
		fields := strings.Fields(inside(t, m, "df", "--output=size", "/srv/pg"))
		if _, err := fmt.Sscan(fields[len(fields)-1], &kib); err != nil || kib < 2*1024*1024*9/10 {
			return fmt.Errorf("the file system has %v KiB, %w", kib, err)
		}
		return nil
	})
}

// canResize says whether this process may have CAP_SYS_RESOURCE (bit 24).
func canResize(t *testing.T) bool {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "CapBnd:")
	var bits uint64
	if _, err := fmt.Sscanf(after, "%x", &bits); err != nil {
		t.Fatal(err)
	}
	return bits&(1<<24) != 0
}

func rebooted(t *testing.T, m guest.Machine) error {
	code, _, err := m.Exec(t.Context(), []string{"test", "-e", "/run/before"})
	if err == nil && code == 0 {
		err = fmt.Errorf("the system is still the old one")
	}
	return err
}

func reports(t *testing.T, m guest.Machine, address string) {
	t.Helper()
	until(t, m, func() error {
		cards, err := m.Interfaces(t.Context())
		if err != nil {
			return err
		}
		for _, card := range cards {
			if card.MAC == mac && len(card.Addresses) > 0 && strings.Contains(fmt.Sprint(card.Addresses), address) {
				return nil
			}
		}
		return fmt.Errorf("the agent reports %+v", cards)
	})
}

func consoleSays(t *testing.T, m guest.Machine, line string) {
	t.Helper()
	until(t, m, func() error {
		content, err := os.ReadFile(m.ConsoleLog())
		if err == nil && !strings.Contains(string(content), line) {
			err = fmt.Errorf("the console has no line %q", line)
		}
		return err
	})
}
