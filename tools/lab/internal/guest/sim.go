package guest

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// NewSim returns the Backend that boots nothing: its machines run, have their
// leased addresses and answer every command with success. What shall go wrong is
// decided by the node agent's knobs. Console logs lie below folder.
func NewSim(folder string) Backend {
	return &sim{folder: folder, volumes: map[string]Volume{}, leases: map[string]netip.Addr{}}
}

type sim struct {
	folder string

	mu       sync.Mutex
	volumes  map[string]Volume
	leases   map[string]netip.Addr
	machines []*simMachine
}

func (s *sim) EnsureVolume(_ context.Context, v Volume) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.Bytes > s.volumes[v.Name].Bytes {
		s.volumes[v.Name] = v
	}
	return nil
}

func (s *sim) DeleteVolume(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.machines {
		if slices.ContainsFunc(m.spec.Disks, func(d Disk) bool { return d.Volume == name }) {
			return fmt.Errorf("delete volume %s: machine %s/%s uses it", name, m.spec.Namespace, m.spec.Name)
		}
	}
	delete(s.volumes, name)
	return nil
}

func (s *sim) Boot(_ context.Context, spec Spec) (Machine, error) {
	folder := filepath.Join(s.folder, spec.UID)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("create the machine's folder: %w", err)
	}
	m := &simMachine{sim: s, spec: spec, console: filepath.Join(folder, "console.log"), done: make(chan Exit, 1)}
	if err := os.WriteFile(m.console, []byte("simulated console of "+spec.Namespace+"/"+spec.Name+"\n"), 0o644); err != nil {
		return nil, fmt.Errorf("create the console log: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range spec.Disks {
		if _, ok := s.volumes[d.Volume]; !ok {
			return nil, fmt.Errorf("attach disk %s: there is no volume %s", d.Name, d.Volume)
		}
	}
	for _, n := range spec.NICs {
		if _, ok := s.leases[n.MAC]; !ok {
			s.leases[n.MAC] = n.Address
		}
	}
	s.machines = append(s.machines, m)
	return m, nil
}

func (s *sim) SetLease(mac string, address netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases[mac] = address
}

func (s *sim) Close() error {
	s.mu.Lock()
	machines := slices.Clone(s.machines)
	s.mu.Unlock()
	for _, m := range machines {
		m.end("the lab ends")
	}
	return nil
}

type simMachine struct {
	sim     *sim
	spec    Spec
	console string
	once    sync.Once
	done    chan Exit
}

// Exec answers `cat /etc/os-release` as Debian 12 does and anything else with success.
func (m *simMachine) Exec(_ context.Context, command []string) (int, string, error) {
	if slices.Equal(command, []string{"cat", "/etc/os-release"}) {
		return 0, "ID=debian\nNAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\nVERSION=\"12 (bookworm)\"\n", nil
	}
	return 0, "", nil
}

func (m *simMachine) Interfaces(context.Context) ([]Interface, error) {
	m.sim.mu.Lock()
	defer m.sim.mu.Unlock()
	out := make([]Interface, 0, len(m.spec.NICs))
	for i, n := range m.spec.NICs {
		out = append(out, Interface{MAC: n.MAC, Device: fmt.Sprintf("enp%ds0", i+1), Addresses: []netip.Addr{m.sim.leases[n.MAC]}})
	}
	return out, nil
}

func (m *simMachine) ConsoleLog() string { return m.console }

func (m *simMachine) Reboot(context.Context) error { return nil }

func (m *simMachine) Shutdown(context.Context, time.Duration) error {
	m.end("the guest was shut down")
	return nil
}

func (m *simMachine) Kill() error {
	m.end("the plug was pulled")
	return nil
}

func (m *simMachine) Done() <-chan Exit { return m.done }

func (m *simMachine) end(reason string) {
	m.once.Do(func() {
		m.sim.mu.Lock()
		m.sim.machines = slices.DeleteFunc(m.sim.machines, func(other *simMachine) bool { return other == m })
		m.sim.mu.Unlock()
		m.done <- Exit{Reason: reason}
	})
}
