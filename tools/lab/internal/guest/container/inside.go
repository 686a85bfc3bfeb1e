package container

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"golang.org/x/sys/unix"
)

// startWithin bounds nspawn's start.
const startWithin = time.Minute

// init is the process id of the guest's first process.
func (m *machine) init() (int, error) {
	m.mu.Lock()
	process := m.process
	m.mu.Unlock()
	if process == nil {
		return 0, errors.New("find the guest's init: it is not started")
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", process.Pid))
	if err != nil {
		return 0, fmt.Errorf("find the guest's init: %w", err)
	}
	outer, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read nspawn's namespace: %w", err)
	}
	for pid := range strings.FieldsSeq(string(children)) {
		// nspawn's first child still has the host's root: not to be entered.
		space, err := os.Readlink("/proc/" + pid + "/ns/pid")
		if err == nil && space != outer {
			return strconv.Atoi(pid)
		}
	}
	return 0, errors.New("find the guest's init: there is none yet")
}

// agent is the guest's init once its agent would answer. There is no virtio
// port here; an agent that is installed answers as soon as systemd does.
func (m *machine) agent() (int, error) {
	pid, err := m.init()
	if err != nil || !has(pid, "usr/sbin/qemu-ga") || !has(pid, systemdSocket) {
		return 0, guest.ErrNoAgent
	}
	return pid, nil
}

// systemdSocket is there once the guest's systemd listens.
const systemdSocket = "run/systemd/private"

// has says whether the root of process pid has the file.
func has(pid int, path string) bool {
	_, err := os.Lstat(filepath.Join("/proc", strconv.Itoa(pid), "root", path))
	return err == nil
}

// Exec implements guest.Machine.
func (m *machine) Exec(ctx context.Context, command []string) (int, string, error) {
	pid, err := m.agent()
	if err != nil {
		return 0, "", err
	}
	return enter(ctx, pid, command)
}

// enter runs a command in all namespaces of process pid.
func enter(ctx context.Context, pid int, command []string) (int, string, error) {
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--target", strconv.Itoa(pid), "--all", "--wd=/", "--"}, command...)...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // a child of the command may keep its output open
	err := cmd.Start()
	if err == nil {
		go killStopped(cmd.Process)
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, output.String(), fmt.Errorf("run %s in the guest: %w", command[0], ctx.Err())
	case errors.As(err, &exit) && !exit.Exited(): // the guest goes down
		return 0, output.String(), guest.ErrNoAgent
	case errors.As(err, &exit):
		return exit.ExitCode(), output.String(), nil
	case err != nil:
		return 0, output.String(), fmt.Errorf("run %s in the guest: %w", command[0], err)
	default:
		return 0, output.String(), nil
	}
}

// killStopped ends nsenter when it stops. A guest that goes down stops all of its
// processes for a moment, nsenter follows its child into that, and nobody would
// wake it: it would never reap the child, and the guest would wait for that.
func killStopped(nsenter *os.Process) {
	const stopped = 5 // CLD_STOPPED
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, nsenter.Pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil && info.Code == stopped {
			_ = nsenter.Kill() // it may have been woken and have ended
		}
		return
	}
}

// Interfaces implements guest.Machine.
func (m *machine) Interfaces(context.Context) ([]guest.Interface, error) {
	pid, err := m.agent()
	if err != nil {
		return nil, err
	}
	space, err := netns.GetFromPid(pid)
	if err != nil {
		return nil, guest.ErrNoAgent // it has just ended
	}
	defer func() { _ = space.Close() }()
	handle, err := netlink.NewHandleAt(space)
	if err != nil {
		return nil, fmt.Errorf("open the guest's network: %w", err)
	}
	defer handle.Close()
	links, err := handle.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list the guest's links: %w", err)
	}
	var out []guest.Interface
	for _, link := range links {
		addresses, err := handle.AddrList(link, netlink.FAMILY_ALL)
		if err != nil {
			return nil, fmt.Errorf("list the guest's addresses: %w", err)
		}
		card := guest.Interface{MAC: link.Attrs().HardwareAddr.String(), Device: link.Attrs().Name}
		for _, a := range addresses {
			if ip, ok := netip.AddrFromSlice(a.IP); ok {
				card.Addresses = append(card.Addresses, ip.Unmap())
			}
		}
		out = append(out, card)
	}
	return out, nil
}

// sizeMemory lays the guest's own memory size over the host's. nspawn cannot:
// its /proc is mounted after what it binds. Until the guest's own init runs, a
// mount of nspawn's may still come over this one.
func (m *machine) sizeMemory() {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	for ctx.Err() == nil {
		if pid, err := m.init(); err == nil && has(pid, "run/lab/meminfo") {
			booting := runs(pid, "systemd")
			switch sized := m.sized(pid); {
			case sized && booting:
				return
			case !sized:
				code, output, err := enter(ctx, pid, []string{"mount", "--bind", "/run/lab/meminfo", "/proc/meminfo"})
				if booting && (code != 0 || err != nil) {
					fmt.Fprintf(m.backend.Options.Log, "guest %s/%s: set memory size: %s %v\n", m.Spec.Namespace, m.Spec.Name, output, err)
					return // or the guest has just ended
				}
			}
		}
		select {
		case <-m.Ended():
			return
		case <-time.After(10 * time.Millisecond): // nspawn is not ready yet
		}
	}
}

// sized says whether process pid sees the guest's own memory size.
func (m *machine) sized(pid int) bool {
	seen, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "root/proc/meminfo"))
	return err == nil && string(seen) == meminfo(m.Spec.MemoryMiB)
}

// runs says whether process pid is of that program.
func runs(pid int, program string) bool {
	name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
	return err == nil && strings.TrimSpace(string(name)) == program
}
