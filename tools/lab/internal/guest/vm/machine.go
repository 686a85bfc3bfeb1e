package vm

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/host"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/network"
)

// machine implements guest.Machine.
type machine struct {
	*host.Machine
	backend *Backend

	monitorMu, agentMu sync.Mutex // each channel takes one caller at a time

	mu      sync.Mutex
	process *os.Process
	killed  bool
}

func (m *machine) boot(ctx context.Context) error {
	if err := m.Register(m); err != nil {
		return err
	}
	started := make(chan error, 1)
	go m.run(started)
	select {
	case err := <-started:
		return err
	case <-ctx.Done():
		if err := <-started; err != nil {
			return err
		}
		return errors.Join(ctx.Err(), m.Kill())
	}
}

// run is the machine's life.
func (m *machine) run(started chan<- error) {
	runtime.LockOSThread() // the kernel sends the parent's-death signal when the thread ends
	cmd, err := m.start()
	if err == nil {
		m.mu.Lock()
		m.process = cmd.Process
		m.mu.Unlock()
	} else {
		m.Forget()
	}
	started <- err
	if err != nil {
		return
	}
	m.end(cmd)
}

func (m *machine) end(cmd *exec.Cmd) {
	err := cmd.Wait()
	m.mu.Lock()
	killed := m.killed
	m.mu.Unlock()
	exit := guest.Exit{Reason: "the guest was powered off"}
	if err != nil && !killed {
		log, _ := os.ReadFile(filepath.Join(m.Folder, "qemu.log")) // the error says enough
		exit = guest.Exit{Failed: true, Reason: fmt.Sprintf("qemu ended: %v %s", err, log)}
	}
	for _, link := range m.Links {
		if err := network.Delete(link); err != nil { // else the kernel does it some time later
			exit.Reason += "; " + err.Error()
		}
	}
	for _, file := range []string{m.seedFile(), m.monitor(), m.agentSocket()} {
		if err := os.RemoveAll(file); err != nil {
			exit.Reason += "; " + err.Error()
		}
	}
	m.End(exit)
}

// Kill implements guest.Machine.
func (m *machine) Kill() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.killed = true
	if m.process == nil {
		return nil
	}
	if err := m.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill qemu: %w", err)
	}
	return nil
}

// Shutdown implements guest.Machine: it presses the power button.
func (m *machine) Shutdown(ctx context.Context, grace time.Duration) error {
	pressed := m.monitorCall(ctx, "system_powerdown", nil, nil)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-m.Ended():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		if err := m.Kill(); err != nil {
			return err
		}
		return pressed
	}
}

// Reboot implements guest.Machine.
func (m *machine) Reboot(ctx context.Context) error {
	return m.withAgent(ctx, func(c *channel) error {
		return c.send("", "guest-shutdown", map[string]any{"mode": "reboot"}) // success has no answer
	})
}

// Exec implements guest.Machine.
func (m *machine) Exec(ctx context.Context, command []string) (code int, output string, err error) {
	err = m.withAgent(ctx, func(c *channel) error {
		var process struct{ PID int }
		arguments := map[string]any{"path": command[0], "arg": command[1:], "capture-output": true}
		if err := c.call("guest-exec", arguments, &process); err != nil {
			return err
		}
		for {
			var status struct {
				Exited   bool   `json:"exited"`
				ExitCode int    `json:"exitcode"`
				Out      string `json:"out-data"`
				Err      string `json:"err-data"`
			}
			if err := c.call("guest-exec-status", map[string]any{"pid": process.PID}, &status); err != nil {
				return err
			}
			if status.Exited {
				code, output = status.ExitCode, decode(status.Out)+decode(status.Err)
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(50 * time.Millisecond): // the agent has no event for it
			}
		}
	})
	return code, output, err
}

// Interfaces implements guest.Machine.
func (m *machine) Interfaces(ctx context.Context) ([]guest.Interface, error) {
	var cards []struct {
		Name      string `json:"name"`
		MAC       string `json:"hardware-address"`
		Addresses []struct {
			Address string `json:"ip-address"`
		} `json:"ip-addresses"`
	}
	err := m.withAgent(ctx, func(c *channel) error { return c.call("guest-network-get-interfaces", nil, &cards) })
	if err != nil {
		return nil, err
	}
	var out []guest.Interface
	for _, card := range cards {
		one := guest.Interface{MAC: strings.ToLower(card.MAC), Device: card.Name}
		for _, a := range card.Addresses {
			if ip, err := netip.ParseAddr(a.Address); err == nil {
				one.Addresses = append(one.Addresses, ip)
			}
		}
		out = append(out, one)
	}
	return out, nil
}

// withAgent runs a conversation with the guest's agent, if it has one listening.
func (m *machine) withAgent(ctx context.Context, talk func(*channel) error) error {
	m.agentMu.Lock()
	defer m.agentMu.Unlock()
	var devices []struct {
		Label string `json:"label"`
		Open  bool   `json:"frontend-open"`
	}
	if err := m.monitorCall(ctx, "query-chardev", nil, &devices); err != nil {
		return fmt.Errorf("%w: %w", guest.ErrNoAgent, err)
	}
	listening := false
	for _, d := range devices {
		listening = listening || d.Label == "agent" && d.Open
	}
	if !listening {
		return guest.ErrNoAgent
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, agentWithin)
		defer cancel()
	}
	c, err := dial(ctx, m.agentSocket())
	if err != nil {
		return fmt.Errorf("%w: %w", guest.ErrNoAgent, err)
	}
	defer c.close()
	if err := c.synchronize(); err != nil {
		return fmt.Errorf("%w: %w", guest.ErrNoAgent, err)
	}
	return talk(c)
}

// grow tells the running machine of a volume's new size.
func (m *machine) grow(ctx context.Context, v guest.Volume) error {
	for i, disk := range m.Spec.Disks {
		if disk.Volume == v.Name {
			arguments := map[string]any{"device": fmt.Sprintf("disk%d", i), "size": v.Bytes}
			return m.monitorCall(ctx, "block_resize", arguments, nil)
		}
	}
	return fmt.Errorf("find disk of volume %s", v.Name)
}

func decode(s string) string {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return s
	}
	return string(b)
}
