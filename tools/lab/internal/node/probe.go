package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
)

// tally turns the results of a probe into a state, as kubelet does.
type tally struct {
	success, failure int32

	ready bool
	last  bool
	run   int32
}

func newTally(p *corev1.Probe) *tally {
	return &tally{success: max(p.SuccessThreshold, 1), failure: max(p.FailureThreshold, 1)}
}

// add counts one result and returns the state after it.
func (t *tally) add(ok bool) bool {
	if t.run == 0 || ok != t.last {
		t.last, t.run = ok, 0
	}
	t.run++
	if ok && t.run >= t.success {
		t.ready = true
	}
	if !ok && t.run >= t.failure {
		t.ready = false
	}
	return t.ready
}

// A probing is one readiness probe of one container.
type probing struct {
	spec *corev1.Probe
	// delay before the first try.
	delay time.Duration
	// try runs the probe once.
	try func(context.Context) (ok bool, output string)
	// failed hears of every failure, changed of every new state.
	failed  func(output string)
	changed func(ready bool)
}

// run probes until ctx ends. The state starts as not ready.
func (p *probing) run(ctx context.Context) {
	tick := time.NewTimer(p.delay)
	defer tick.Stop()
	t := newTally(p.spec)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		before := t.ready
		ok, output := p.try(ctx)
		if ctx.Err() != nil {
			return
		}
		if !ok {
			p.failed(output)
		}
		if now := t.add(ok); now != before {
			p.changed(now)
		}
		tick.Reset(time.Duration(max(p.spec.PeriodSeconds, 1)) * time.Second)
	}
}

// A guestProbe is what virt-controller makes of a probe that runs in the guest:
// a command line of virt-probe.
type guestProbe struct {
	ping    bool
	command []string
	timeout time.Duration
}

// parseGuestProbe reads virt-probe's command line (KubeVirt 1.7,
// cmd/virt-probe/virt-probe.go). It is nil for any other command.
func parseGuestProbe(line []string) *guestProbe {
	if len(line) == 0 || line[0] != "virt-probe" {
		return nil
	}
	p := &guestProbe{timeout: time.Second}
	for i := 1; i < len(line); i++ {
		switch arg := line[i]; {
		case arg == "--":
			p.command = append(p.command, line[i+1:]...)
			return p
		case arg == "--guestAgentPing":
			p.ping = true
		case i+1 == len(line):
			return p
		case arg == "--timeoutSeconds":
			i++
			if d, err := time.ParseDuration(line[i] + "s"); err == nil {
				p.timeout = d
			}
		case arg == "--command":
			i++
			p.command = []string{line[i]}
		default:
			i++ // --domainName and --socket: there is one machine to ask
		}
	}
	return p
}

// probed is what a guestProbe asks.
type probed interface {
	Exec(ctx context.Context, command []string) (int, string, error)
	Interfaces(ctx context.Context) ([]guest.Interface, error)
}

// ask runs the probe in the guest. The output of a failure is what virt-probe
// prints: the command's output, or a line of log if the agent refused.
func (p *guestProbe) ask(ctx context.Context, m probed) (ok bool, output string) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	if p.ping {
		if _, err := m.Interfaces(ctx); err != nil {
			return false, virtProbeLog("Failed to ping the guest", err)
		}
		return true, ""
	}
	code, output, err := m.Exec(ctx, p.command)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return false, virtProbeLog("Failed executing the command", fmt.Errorf("timed out waiting for command [%s] to exit", p.command[0]))
	case err != nil:
		return false, virtProbeLog("Failed executing the command", err)
	}
	return code == 0, strings.TrimRight(output, "\n")
}

func virtProbeLog(msg string, err error) string {
	return fmt.Sprintf(`{"component":"virt-probe","level":"fatal","msg":%q,"reason":%q}`, msg, err.Error())
}
