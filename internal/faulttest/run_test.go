package faulttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// attempt is one operation on one instance, before and after.
type attempt struct {
	object *object // what the state holds afterwards
	said   *verdicts
	record []request
	mark   int
}

// try runs a cell and judges it.
func (w *worker) try(ctx context.Context, c cell) (r result) {
	ctx, stop := context.WithTimeout(ctx, 6*time.Minute)
	defer stop()
	began := time.Now()
	r = result{Cell: c.String()}
	var err error
	switch {
	case c.fault.interrupts > 0:
		err = w.tryTerraform(ctx, c, &r)
	case c.operation.kind == creates:
		err = w.tryCreate(ctx, c, &r)
	case c.operation.kind == changes:
		err = w.tryChange(ctx, c, &r)
	case c.operation.kind == removes:
		err = w.tryRemove(ctx, c, &r)
	default:
		err = w.tryLook(ctx, c, &r)
	}
	r.Seconds = time.Since(began).Seconds()
	if p, ok := errors.AsType[*problem](err); ok {
		r.Outcome, r.Why = p.outcome, p.why
	} else if err != nil {
		r.Outcome, r.Why = wrong, err.Error()
	}
	if err != nil {
		w.forget(c.operation) // it stays as it is, to be looked at
	}
	return r
}

// fires says whether the disturbance took place, and judges the record.
func (a *attempt) fires(c cell, r *result, name string) error {
	r.Instance, r.Requests, r.Said = name, len(a.record)-a.mark, a.said.all()
	fired := false
	for _, request := range a.record {
		fired = fired || request.Fault != ""
	}
	if !fired {
		return &problem{missed, "the request did not come"}
	}
	if err := bounded(c, name, a.record, a.mark); err != nil {
		return err
	}
	if a.said.failed() && !c.fault.kills {
		return helps(name, a.said.text())
	}
	return nil
}

// tryCreate creates an instance, disturbed, and brings it to its end.
func (w *worker) tryCreate(ctx context.Context, c cell, r *result) error {
	s := &standing{name: newName()}
	s.config = c.during(monitored(minimal(s.name)))
	a := &attempt{}
	rule := c.rule(s.name)
	var err error
	a.record, a.mark, err = w.disturbed(&rule, func(ready func() error) (err error) {
		a.object, a.said, err = w.carry(ctx, c, nil, wish{Config: s.config}, ready)
		return err
	})
	if err != nil {
		return err
	}
	s.object = a.object
	judged := a.fires(c, r, s.name)
	if p, ok := errors.AsType[*problem](judged); ok && p.outcome != missed {
		return judged
	}
	left, err := w.lab.evidence(ctx, s.name)
	if err != nil {
		return err
	}
	if err := w.leaks(a.object, left, a.said); err != nil {
		return err
	}
	s.config = monitored(minimal(s.name))
	r.Outcome = healed
	if a.said.failed() {
		r.Outcome = next
		if r.How, err = w.recover(ctx, s, left, a.said); err != nil {
			return err
		}
	} else if err := w.finishWarned(ctx, s, r, a.said, c.fault); err != nil {
		return err
	}
	if s.object != nil {
		if err := w.verify(ctx, s, nil, false); err != nil {
			return err
		}
	}
	if err := w.destroy(ctx, s); err != nil {
		return lostf("%v", err)
	}
	return judged
}

// finishWarned applies once more what succeeded with a warning that says so,
// and what had other deadlines. So it does after an older answer: if it was to
// the last read, the state shows it until the next one. (A real API server
// gives older lists only, but it is the same to the provider.)
func (w *worker) finishWarned(ctx context.Context, s *standing, r *result, said *verdicts, f fault) error {
	warnings := strings.Join(said.Warnings, "\n")
	warned := strings.Contains(warnings, "the next apply") || strings.Contains(warnings, "the next plan")
	stale := f.rule.Action == "stale"
	if !warned && !f.lasting && !stale {
		return nil
	}
	after, err := w.settled(ctx, s.object, wish{Config: s.config})
	if err != nil {
		return wrongf("the next apply: %v", err)
	}
	walk, err := w.core.walk(ctx, &verdicts{})
	if err != nil {
		return err
	}
	differs, err := walk.differs(s.object, after)
	switch {
	case warned:
		r.Outcome, r.How = next, "warned"
	case stale && differs != "":
		r.Outcome, r.How = next, "read again"
	}
	s.object = after
	return err
}

// recover brings a create that failed to its end, in the way that its state
// allows and its error names.
func (w *worker) recover(ctx context.Context, s *standing, left *evidence, said *verdicts) (string, error) {
	if s.object == nil {
		return w.resume(ctx, s, left, said)
	}
	if !s.object.Tainted {
		return "", wrongf("a failed create is not tainted")
	}
	if !strings.Contains(said.text(), "terraform untaint") {
		return "", wrongf("the error does not name terraform untaint")
	}
	// A third of the instances is given up, a third replaced, a third kept.
	switch s.name[1] % 3 {
	case 0:
		after, err := w.settled(ctx, s.object, wish{s.config, true})
		if err != nil {
			return "", wrongf("the destroy of what is tainted: %v", err)
		}
		s.object = after
		return "destroyed", nil
	case 1:
		after, said, err := w.apply(ctx, s.object, wish{Config: s.config}, nothing)
		if err != nil {
			return "", err
		}
		if s.object = after; !said.failed() {
			return "replaced once", nil
		}
		// It has become available meanwhile: then it holds data.
		if after == nil || !strings.Contains(said.text(), "terraform untaint") {
			return "", wrongf("the next apply: %s", said.text())
		}
	}
	s.object.Tainted = false
	after, err := w.settled(ctx, s.object, wish{Config: s.config})
	if err != nil {
		return "", wrongf("the apply after untaint: %v", err)
	}
	s.object = after
	return "untainted", w.kept(ctx, s.name, left)
}

// resume applies again what left no state.
func (w *worker) resume(ctx context.Context, s *standing, left *evidence, said *verdicts) (string, error) {
	for object := range left.uids {
		// Whoever gives up must be able to find what stands, if there was a chance
		// to say it.
		_, name, _ := strings.Cut(object, " ")
		if said.text() != killed && strings.HasPrefix(object, "secrets ") && !strings.Contains(said.text(), name) {
			return "", lostf("secret %s stands, and neither state nor error name it", name)
		}
	}
	after, again, err := w.apply(ctx, nil, wish{Config: s.config}, nothing)
	if err != nil {
		return "", err
	}
	how := "resumed"
	if again.failed() && strings.Contains(again.text(), "terraform import") {
		how = "imported"
		if after, err = w.adopt(ctx, s); err != nil {
			return "", err
		}
	} else if again.failed() {
		return "", wrongf("the next apply: %s", again.text())
	}
	s.object = after
	return how, w.kept(ctx, s.name, left)
}

// adopt imports an instance and applies its configuration.
func (w *worker) adopt(ctx context.Context, s *standing) (*object, error) {
	said := &verdicts{}
	walk, err := w.core.walk(ctx, said)
	if err != nil {
		return nil, err
	}
	imported, err := walk.importObject(ctx, namespace+"/"+s.name)
	if err != nil || imported == nil {
		return nil, fmt.Errorf("import: %s, %w", said.text(), err)
	}
	return w.settled(ctx, imported, wish{Config: s.config})
}

// kept judges that what was resumed has the material and the VM that stood.
func (w *worker) kept(ctx context.Context, name string, left *evidence) error {
	stands, err := w.lab.evidence(ctx, name)
	if err != nil {
		return err
	}
	if why := stands.lost(left, false); why != "" {
		return lostf("%s", why)
	}
	if was := left.uid("virtualmachines", ""); was != "" && was != stands.uid("virtualmachines", "") {
		return lostf("the virtual machine is another")
	}
	return nil
}
