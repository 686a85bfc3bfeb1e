package faulttest

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// outcome is what became of a cell.
type outcome string

const (
	healed outcome = "healed" // it succeeded by itself
	next   outcome = "next"   // it failed, and the next apply or destroy converged
	lost   outcome = "lost"
	wrong  outcome = "wrong"  // any other judgement that failed
	missed outcome = "missed" // the request did not come this time
)

// result is one line of the ledger.
type result struct {
	Cell    string
	Outcome outcome
	// How says in which way a create came to its end.
	How string `json:",omitempty"`
	// Why says what was judged wrong.
	Why      string `json:",omitempty"`
	Said     string `json:",omitempty"`
	Instance string
	Requests int
	Seconds  float64
}

// problem is a judgement that failed.
type problem struct {
	outcome outcome
	why     string
}

func (p *problem) Error() string { return fmt.Sprintf("%s: %s", p.outcome, p.why) }

func lostf(format string, a ...any) error  { return &problem{lost, fmt.Sprintf(format, a...)} }
func wrongf(format string, a ...any) error { return &problem{wrong, fmt.Sprintf(format, a...)} }

// helps says what is missing from an error: the object, the verb or the cause.
func helps(name, said string) error {
	for what, pattern := range map[string]string{
		"the object": `pg-` + name + `|` + namespace + `/` + name + `|debian-12|vm-net-100|longhorn`,
		"the verb":   `(?i)\b(get|list|create|continue|patch|delete|watch|wait|label|claim|update|read|stop|start|grow|check|restart|finish)\b`,
		"the cause":  `injected fault|EOF|connection|not available in time|deadline|changed meanwhile|did not answer|stands without|already exists|the object has been modified`,
	} {
		if !regexp.MustCompile(pattern).MatchString(said) {
			return wrongf("the error does not name %s", what)
		}
	}
	return nil
}

// bounded judges the record of a disturbed run: how often one request was
// repeated, how soon, and that nothing foreign was written to.
func bounded(c cell, name string, record []request, mark int) error {
	// The provider's own pauses double up to five seconds, for a minute; and
	// client-go repeats what was cut or told to come again.
	const most = 24
	tries := map[signature]int{}
	var told time.Time
	for _, r := range record {
		s := signatureOf(r, name)
		if r.Index <= mark {
			continue
		}
		if r.Fault != "" {
			tries[s]++
		}
		if tries[s] > most {
			return wrongf("%s was tried more than %d times", s, most)
		}
		if s == c.request && !told.IsZero() {
			if gap := r.Time.Sub(told); gap < retryAfter*time.Second {
				return wrongf("told to come again after %d s, %s came after %v", retryAfter, s, gap)
			}
			told = time.Time{}
		}
		if r.Fault != "" && c.fault.rule.RetryAfter > 0 {
			told = r.Time
		}
		if err := own(r, name); err != nil {
			return err
		}
	}
	return nil
}

// own refuses a write to what is not the instance's.
func own(r request, name string) error {
	switch r.Method {
	case "PUT", "PATCH", "DELETE":
		path, _, _ := strings.Cut(r.Path, "?")
		objects := `/pg-` + name + `(-(os|data|credentials|cloudinit|metrics|monitor))?(/\w+)?$`
		if !regexp.MustCompile(objects).MatchString(path) {
			return lostf("a foreign object was touched: %s %s", r.Method, path)
		}
	}
	return nil
}

// verify judges an instance that an apply has left as configured: what was
// saved is what stands, nothing is left to do, and no secret is out of place.
// Before is what must not have been lost; nil if there was nothing.
func (w *worker) verify(ctx context.Context, s *standing, before *evidence, rotated bool) error {
	stands, err := w.lab.evidence(ctx, s.name)
	if err != nil {
		return err
	}
	if before != nil {
		if why := stands.lost(before, rotated); why != "" {
			return lostf("%s", why)
		}
		if rotated && stands.material["admin_password"] == before.material["admin_password"] {
			return wrongf("the password was not rotated")
		}
	}
	for _, key := range []string{"ca_key", "admin_password_next"} {
		if stands.material[key] != "" {
			return wrongf("%s is still in the credentials Secret", key)
		}
	}
	said := &verdicts{}
	walk, err := w.core.walk(ctx, said)
	if err != nil {
		return err
	}
	read, err := walk.refresh(ctx, s.object)
	if err != nil || said.failed() || read == nil {
		return wrongf("a read afterwards: %v: %s, %v", read, said.text(), err)
	}
	if differs, err := walk.differs(s.object, read); differs != "" || err != nil {
		return wrongf("the state is not what stands: %s, %v", differs, err)
	}
	planned, err := walk.plan(ctx, read, s.config)
	if err != nil || said.failed() {
		return wrongf("a plan afterwards: %s, %v", said.text(), err)
	}
	if none, err := walk.empty(planned); !none || err != nil {
		return wrongf("a second plan is not empty: %v", err)
	}
	return w.agrees(walk, read, stands, said)
}

// agrees compares the state with the Secret, and looks for leaks.
func (w *worker) agrees(walk *walk, o *object, stands *evidence, said *verdicts) error {
	state, err := walk.unpack(walk.stateOf(o))
	if err != nil {
		return err
	}
	for attribute, key := range map[string]string{"master_password": "admin_password", "ca_cert_pem": "ca_cert", "instance_id": "instance_id"} {
		value, err := text(state, attribute)
		if err != nil {
			return err
		}
		if value != stands.material[key] {
			return lostf("%s of the state is not what the Secret holds", attribute)
		}
	}
	return w.leaks(o, stands, said)
}

func (w *worker) leaks(o *object, stands *evidence, said *verdicts) error {
	if leak := stands.leak(); leak != "" {
		return lostf("%s", leak)
	}
	if leak := stands.leakIn(o, said); leak != "" {
		return lostf("%s", leak)
	}
	return nil
}
