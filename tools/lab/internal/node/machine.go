package node

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/knobs"
)

// A machine is a booted guest and what is known of it.
type machine struct {
	guest.Machine
	spec   guest.Spec
	pod    types.NamespacedName
	booted time.Time

	mu     sync.Mutex
	report report
	// stopping is when the guest was asked to power off, killed whether the plug
	// was pulled by the lab, ended how it ended.
	stopping, end time.Time
	grace         time.Duration
	killed        bool
	ended         *guest.Exit
}

// A report is what the guest's agent says.
type report struct {
	connected  bool
	interfaces []guest.Interface
	os         map[string]string
}

// ask returns what the agent says, as far as the knobs let it.
func (m *machine) ask(ctx context.Context, v knobs.Values) report {
	since := time.Since(m.booted)
	if v.On(knobs.NoAgent) {
		return report{}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	nics, err := m.Interfaces(ctx)
	if err != nil {
		return report{}
	}
	r := report{connected: true, interfaces: bendAddresses(nics, m.spec.NICs, v, since), os: m.current().os}
	if r.os == nil {
		if code, text, err := m.Exec(ctx, []string{"cat", "/etc/os-release"}); err == nil && code == 0 {
			r.os = parseOSRelease(text)
		}
	}
	return r
}

func (m *machine) current() report {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.report
}

func (m *machine) exit() *guest.Exit {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ended
}

// stop asks the guest to power off, once. It returns at once.
func (m *machine) stop(grace time.Duration, log *slog.Logger) (first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.stopping.IsZero() || m.ended != nil {
		return false
	}
	m.stopping, m.grace = time.Now(), grace
	go func() {
		if err := m.Shutdown(context.Background(), grace); err != nil {
			log.Warn("cannot shut a guest down", "namespace", m.spec.Namespace, "name", m.spec.Name, "error", err)
		}
	}()
	return true
}

// pullPlug ends the guest as a power cut does.
func (m *machine) pullPlug(log *slog.Logger) {
	m.mu.Lock()
	done := m.killed || m.ended != nil
	m.killed = true
	m.mu.Unlock()
	if done {
		return
	}
	if err := m.Kill(); err != nil {
		log.Warn("cannot pull a guest's plug", "namespace", m.spec.Namespace, "name", m.spec.Name, "error", err)
	}
}

// phase is what virt-handler makes of the end of a guest: powering off is success,
// whoever wanted it; a crash, and a guest that had to be destroyed after its grace
// period, are failures (calculateVmPhaseForStatusReason).
func (m *machine) phase() kubevirtv1.VirtualMachineInstancePhase {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.ended == nil:
		return kubevirtv1.Running
	case m.ended.Failed, m.killed:
		return kubevirtv1.Failed
	case !m.stopping.IsZero() && m.grace > 0 && m.end.Sub(m.stopping) >= m.grace:
		return kubevirtv1.Failed
	default:
		return kubevirtv1.Succeeded
	}
}

func parseOSRelease(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			out[key] = strings.Trim(value, `"'`)
		}
	}
	return out
}

// move makes another pod the guest's launcher.
func (m *machine) move(pod types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pod = pod
}

// launcher is the guest's pod.
func (m *machine) launcher() types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pod
}
