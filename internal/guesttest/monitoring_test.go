package guesttest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// answer bounds the wait for an exporter whose packets may be dropped.
const answer = 5 * time.Second

// metrics asks the exporter beside the database whether it reaches PostgreSQL.
func (c client) metrics(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(c["host"], "9187")+"/metrics", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && !strings.Contains(string(text), "\npg_up 1\n") {
		err = errors.New("the exporter does not say pg_up 1")
	}
	return err
}

// TestMonitoring switches the exporter on and off, and gives it other readers.
func TestMonitoring(t *testing.T) {
	l := useLab(t, containerLab, "container")
	i := l.newInstance(t, "metered", args{"monitoring": `{ allowed_cidrs = ["198.18.0.0/15"] }`})
	i.apply(t)
	until(t, i.client(t).metrics)
	i.unchanged(t)

	// That the kernel then drops the packets shows in a virtual machine only: a
	// container may not load the filter.
	i.with(args{"monitoring": `{ allowed_cidrs = ["10.0.0.0/8"] }`}).apply(t)
	i.client(t).answers(t, "select 1", "1") // the database's clients are others
	// systemd tells its networks in no order.
	rules, _ := i.inside(t, "metered", "systemctl", "show", exporterUnit, "-p", "IPAddressAllow", "--value")
	got := slices.Sorted(strings.FieldsSeq(rules))
	if diff := cmp.Diff([]string{"10.0.0.0/8", "127.0.0.0/8", "::1/128"}, got); diff != "" {
		t.Error(diff)
	}
	const ask = `exec 3<> /dev/tcp/127.0.0.1/9187 && printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3 && grep -m 1 '^pg_up' <&3`
	until(t, func(context.Context) error {
		if said, _ := i.inside(t, "metered", "bash", "-c", ask); !strings.HasSuffix(said, "pg_up 1") {
			return errors.New("in the guest the exporter says " + said)
		}
		return nil
	})

	i.with(args{"monitoring": ""}).apply(t)
	if said, ok := i.inside(t, "metered", "systemctl", "is-active", exporterUnit); ok {
		t.Errorf("monitoring is off, the exporter is %s", said)
	}
	if i.client(t).metrics(t.Context()) == nil {
		t.Error("monitoring is off, the exporter answers")
	}
	i.unchanged(t)
}

const exporterUnit = "prometheus-postgres-exporter"

// TestVMMonitoring: the lab's host is in 198.18.0.0/15. It reads what it may, and
// nothing once it may not, although the exporter runs on.
func TestVMMonitoring(t *testing.T) {
	l := useLab(t, vmLab, "vm")
	i := l.newInstance(t, "vmetered", args{"monitoring": `{ allowed_cidrs = ["198.18.0.0/15"] }`})
	i.apply(t)
	until(t, i.client(t).metrics)
	i.with(args{"monitoring": `{ allowed_cidrs = ["10.0.0.0/8"] }`}).apply(t)
	c := i.client(t)
	c.answers(t, "select 1", "1")
	if out, ok := i.insideVM(t, "vmetered", "systemctl", "is-active", exporterUnit); !ok {
		t.Errorf("the exporter is %s", out)
	}
	if c.metrics(t.Context()) == nil {
		t.Error("the exporter answers who may not read")
	}
}
