package node

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
)

func TestReadinessFollowsThresholds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var story []string
		tell := func(what string) { story = append(story, fmt.Sprintf("%v %s", time.Since(start), what)) }
		// The database comes up after 9 s, is away from 20 s to 23 s (too short to
		// count) and from 30 s on.
		up := func(d time.Duration) bool {
			return d >= 9*time.Second && d < 20*time.Second || d >= 23*time.Second && d < 30*time.Second
		}
		p := &probing{
			spec:    &corev1.Probe{PeriodSeconds: 2, SuccessThreshold: 1, FailureThreshold: 3},
			delay:   4 * time.Second,
			try:     func(context.Context) (bool, string) { return up(time.Since(start)), "no response" },
			failed:  func(output string) { tell(output) },
			changed: func(ready bool) { tell(fmt.Sprint("ready ", ready)) },
		}
		ctx, cancel := context.WithTimeout(t.Context(), 35*time.Second)
		defer cancel()
		p.run(ctx)
		want := []string{
			"4s no response", "6s no response", "8s no response", "10s ready true",
			"20s no response", "22s no response",
			"30s no response", "32s no response", "34s no response", "34s ready false",
		}
		if d := cmp.Diff(want, story); d != "" {
			t.Error(d)
		}
	})
}

func TestSuccessThresholdCountsInARow(t *testing.T) {
	c := newTally(&corev1.Probe{SuccessThreshold: 2, FailureThreshold: 1})
	var got []bool
	for _, ok := range []bool{true, false, true, true, false} {
		got = append(got, c.add(ok))
	}
	if d := cmp.Diff([]bool{false, false, false, true, false}, got); d != "" {
		t.Error(d)
	}
}

func TestParseGuestProbe(t *testing.T) {
	// What KubeVirt 1.7's wrapExecProbeWithVirtProbe writes.
	line := []string{"virt-probe", "--domainName", "tenant-acme_pg-a", "--timeoutSeconds", "5", "--command", "/usr/local/sbin/dbaas-ready", "--", "-v", "x"}
	want := &guestProbe{command: []string{"/usr/local/sbin/dbaas-ready", "-v", "x"}, timeout: 5 * time.Second}
	if d := cmp.Diff(want, parseGuestProbe(line), cmp.AllowUnexported(guestProbe{})); d != "" {
		t.Error(d)
	}
	ping := []string{"virt-probe", "--domainName", "d", "--timeoutSeconds", "3", "--guestAgentPing"}
	if d := cmp.Diff(&guestProbe{ping: true, timeout: 3 * time.Second}, parseGuestProbe(ping), cmp.AllowUnexported(guestProbe{})); d != "" {
		t.Error(d)
	}
	if p := parseGuestProbe([]string{"cat", "/etc/passwd"}); p != nil {
		t.Errorf("a command in the launcher became %+v", p)
	}
}

type answer struct {
	code   int
	output string
	err    error
}

func (a answer) Exec(context.Context, []string) (int, string, error) { return a.code, a.output, a.err }

func (a answer) Interfaces(context.Context) ([]guest.Interface, error) { return nil, a.err }

func TestProbeOutputIsVirtProbes(t *testing.T) {
	p := &guestProbe{command: []string{"ready"}, timeout: time.Second}
	for name, c := range map[string]struct {
		answer
		ok     bool
		output string
	}{
		"success":  {answer{0, "fine\n", nil}, true, "fine"},
		"failure":  {answer{2, "installing packages\n", nil}, false, "installing packages"},
		"no agent": {answer{0, "", guest.ErrNoAgent}, false, `{"component":"virt-probe","level":"fatal","msg":"Failed executing the command","reason":"guest agent is not connected"}`},
		"timeout": {
			answer{0, "", fmt.Errorf("exec: %w", errors.Join(context.DeadlineExceeded))},
			false,
			`{"component":"virt-probe","level":"fatal","msg":"Failed executing the command","reason":"timed out waiting for command [ready] to exit"}`,
		},
	} {
		ok, output := p.ask(t.Context(), c.answer)
		if ok != c.ok || output != c.output {
			t.Errorf("%s: %v %q", name, ok, output)
		}
	}
}
