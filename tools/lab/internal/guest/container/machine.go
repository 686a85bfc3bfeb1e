package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/host"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/network"
)

// endWithin bounds how long the kernel may take to free what a dead guest held.
const endWithin = 20 * time.Second

// nspawn's exit code when the guest asked to be started again (systemd's
// EXIT_FORCE_RESTART), and systemd's signals for reboot.
const (
	restarted    = 133
	signalReboot = syscall.Signal(34 + 5) // SIGRTMIN+5
)

// machine implements guest.Machine.
type machine struct {
	*host.Machine
	backend *Backend

	mu      sync.Mutex
	group   string
	loops   map[string]*loop // by volume
	process *os.Process      // nspawn
	killed  bool             // by Kill or Shutdown
}

// boot attaches the disks, starts the container and watches over it.
func (m *machine) boot(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Join(m.Folder, "root"), 0o755); err != nil {
		return fmt.Errorf("create machine folder: %w", err)
	}
	group, err := addGroup(m.backend.Options.Network, m.Spec.UID)
	if err != nil {
		return err
	}
	m.group = group
	if err := m.Register(m); err != nil {
		return errors.Join(err, m.free())
	}
	console, err := os.Create(m.ConsoleLog())
	if err == nil {
		err = m.attach()
	}
	started := make(chan error, 1)
	if err == nil {
		go m.run(console, started)
		select {
		case err = <-started:
		case <-ctx.Done():
			err = errors.Join(ctx.Err(), m.Kill(), <-started)
		}
	}
	if err != nil {
		return errors.Join(err, m.free())
	}
	return nil
}

// run starts the container, again after each reboot, until it is off.
func (m *machine) run(console *os.File, started chan<- error) {
	// The kernel sends the parent's-death signal when the thread ends.
	runtime.LockOSThread()
	defer func() { _ = console.Close() }()
	for first := true; ; first = false {
		cmd, err := m.start(console)
		if first {
			started <- err
			if err != nil {
				return
			}
		}
		if err == nil {
			err = cmd.Wait()
		}
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == restarted && !m.isKilled() {
			if err = m.quiet(); err == nil {
				continue
			}
		}
		m.end(err)
		return
	}
}

// quiet waits for the last of the old system, before a reboot's new one.
func (m *machine) quiet() error {
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	if err := removeGroup(ctx, m.group); err != nil {
		return err
	}
	if err := os.Mkdir(m.group, 0o755); err != nil {
		return fmt.Errorf("create control group: %w", err)
	}
	return nil
}

func (m *machine) end(err error) {
	exit := guest.Exit{Reason: "the guest was powered off"}
	if err != nil && !m.isKilled() {
		exit = guest.Exit{Failed: true, Reason: fmt.Sprintf("the container ended: %v", err)}
	}
	if err := m.free(); err != nil {
		exit.Reason += "; " + err.Error()
	}
	m.End(exit)
}

// attach makes a loop device of each volume that is not the root.
func (m *machine) attach() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loops = map[string]*loop{}
	for _, disk := range m.Spec.Disks {
		if disk.Boot {
			continue
		}
		l, err := attach(m.backend.file(disk.Volume))
		if err != nil {
			return fmt.Errorf("attach disk %s: %w", disk.Name, err)
		}
		m.loops[disk.Volume] = l
	}
	return nil
}

// free returns what the guest held, once its last process has gone.
func (m *machine) free() error {
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	problems := []error{killGroup(m.group), removeGroup(ctx, m.group)}
	m.mu.Lock()
	loops := m.loops
	m.loops = nil
	m.mu.Unlock()
	for _, l := range loops {
		problems = append(problems, l.detach(ctx))
	}
	for _, link := range m.Links {
		problems = append(problems, network.Delete(link)) // else the kernel does it some time later
	}
	return errors.Join(append(problems, os.RemoveAll(filepath.Join(m.Folder, "seed")))...)
}

func (m *machine) isKilled() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.killed
}

// Kill implements guest.Machine.
func (m *machine) Kill() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.killed = true
	return killGroup(m.group)
}

// Shutdown implements guest.Machine: nspawn passes SIGTERM on as "power off".
func (m *machine) Shutdown(ctx context.Context, grace time.Duration) error {
	m.mu.Lock()
	m.killed = true
	m.mu.Unlock()
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	for asked := false; ; {
		if !asked && m.listens() { // before, nobody would hear it
			asked = true
			m.mu.Lock()
			process := m.process
			m.mu.Unlock()
			if err := process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return fmt.Errorf("ask guest to power off: %w", err)
			}
		}
		var again <-chan time.Time
		if !asked {
			again = time.After(20 * time.Millisecond)
		}
		select {
		case <-m.Ended():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return m.Kill()
		case <-again:
		}
	}
}

// listens says whether the guest's systemd takes requests.
func (m *machine) listens() bool {
	pid, err := m.init()
	return err == nil && has(pid, systemdSocket)
}

// Reboot implements guest.Machine.
func (m *machine) Reboot(context.Context) error {
	pid, err := m.init()
	if err != nil {
		return fmt.Errorf("reboot guest: %w", err)
	}
	if err := syscall.Kill(pid, signalReboot); err != nil {
		return fmt.Errorf("reboot guest: %w", err)
	}
	return nil
}
