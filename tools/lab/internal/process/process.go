// Package process runs the pieces of a lab in the background: each in a session
// of its own, with a log file and a file that tells later commands which
// process it is.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Spec says what to start.
type Spec struct {
	// Name is the piece; RunDir gets NAME.pid, and Log its output.
	Name, RunDir, Log string
	// Command is the program and its arguments.
	Command []string
	// Env is added to this process's environment.
	Env []string
}

// A Process is a piece that this process has started.
type Process struct {
	Name  string
	ended chan struct{}
	state *os.ProcessState
}

// Start starts the piece. It goes on when the calling process ends.
func Start(s Spec) (*Process, error) {
	for _, folder := range []string{s.RunDir, filepath.Dir(s.Log)} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, fmt.Errorf("start %s: %w", s.Name, err)
		}
	}
	out, err := os.Create(s.Log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	defer out.Close()
	cmd := exec.Command(s.Command[0], s.Command[1:]...) //nolint:noctx // it outlives whoever starts it: see Stop
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), s.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	if err := writeID(pidFile(s.RunDir, s.Name), cmd.Process.Pid); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", s.Name, err), cmd.Process.Kill(), cmd.Wait())
	}
	p := &Process{Name: s.Name, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // what it says is in state
		p.state = cmd.ProcessState
		close(p.ended)
	}()
	return p, nil
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// String says how the process ended.
func (p *Process) String() string {
	select {
	case <-p.ended:
		return p.Name + ": " + p.state.String()
	default:
		return p.Name + ": running"
	}
}

// Find says whether the piece runs, and its process id. A file whose process
// has ended, even if its number is used again, counts as not running.
func Find(runDir, name string) (pid int, running bool, err error) {
	text, err := os.ReadFile(pidFile(runDir, name))
	if errors.Is(err, os.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("find %s: %w", name, err)
	}
	number, _, _ := strings.Cut(string(text), " ")
	pid, err = strconv.Atoi(number)
	if err != nil {
		return 0, false, fmt.Errorf("find %s: parse %s: %w", name, pidFile(runDir, name), err)
	}
	now, err := identity(pid)
	if err != nil {
		return 0, false, nil //nolint:nilerr // it has ended, which is an answer
	}
	return pid, now == strings.TrimSpace(string(text)), nil
}

// Stop ends the piece and what is left of its session, and returns when it has
// ended: with SIGTERM, and after grace with SIGKILL. One that does not run is
// no error.
func Stop(runDir, name string, grace time.Duration) error {
	pid, running, err := Find(runDir, name)
	if err != nil {
		return err
	}
	if running {
		if err := end(pid, grace); err != nil {
			return fmt.Errorf("stop %s (process %d): %w", name, pid, err)
		}
	}
	if err := os.Remove(pidFile(runDir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("stop %s: %w", name, err)
	}
	return nil
}

func end(pid int, grace time.Duration) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	ended, err := awaitEnd(fd, grace)
	if err != nil || ended {
		return err
	}
	// The leader of a session leads its process group too: the group ends with it.
	if err := unix.Kill(-pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	if ended, err = awaitEnd(fd, time.Minute); err == nil && !ended {
		err = errors.New("it survives SIGKILL")
	}
	return err
}

// awaitEnd waits for the process behind a pidfd: that becomes readable when it
// ends, also for a process that is not a child.
func awaitEnd(fd int, limit time.Duration) (bool, error) {
	deadline := time.Now().Add(limit)
	for {
		left := max(0, time.Until(deadline))
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return n > 0, err
	}
}

func pidFile(runDir, name string) string { return filepath.Join(runDir, name+".pid") }

func writeID(file string, pid int) error {
	id, err := identity(pid)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(id+"\n"), 0o644)
}

// identity is a process's number with what tells it from a later one of the
// same number: its start, in clock ticks since boot, and the boot.
func identity(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	// The second field is the command in parentheses and may hold spaces.
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
	fields := strings.Fields(rest)
	const state, start = 0, 19 // fields 3 and 22 of proc(5)
	if len(fields) <= start {
		return "", fmt.Errorf("parse /proc/%d/stat: %d fields", pid, len(fields))
	}
	if fields[state] == "Z" {
		return "", errors.New("the process has ended")
	}
	return fmt.Sprintf("%d %s %s", pid, fields[start], strings.TrimSpace(string(boot))), nil
}
