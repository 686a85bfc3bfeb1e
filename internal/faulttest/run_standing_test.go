package faulttest

import (
	"context"
	"errors"
	"strings"
)

// tryChange changes an instance that stands, disturbed, and then again if that
// failed.
func (w *worker) tryChange(ctx context.Context, c cell, r *result) error {
	s, to, err := w.instance(ctx, c.operation)
	if err != nil {
		return err
	}
	before, err := w.lab.evidence(ctx, s.name)
	if err != nil {
		return err
	}
	a := &attempt{}
	rule := c.rule(s.name)
	a.record, a.mark, err = w.disturbed(&rule, func(ready func() error) (err error) {
		a.object, a.said, err = w.carry(ctx, c, s.object, wish{Config: c.during(to)}, ready)
		return err
	})
	if err != nil {
		return err
	}
	if a.object == nil || a.object.Tainted {
		return lostf("a failed update left %v", a.object)
	}
	s.object, s.config = a.object, to
	judged := a.fires(c, r, s.name)
	if p, ok := errors.AsType[*problem](judged); ok && p.outcome != missed {
		return judged
	}
	rotated := c.operation.name == "rotation"
	if err := w.halfway(ctx, s, before, a.said); err != nil {
		return err
	}
	r.Outcome = healed
	if a.said.failed() {
		r.Outcome = next
		if s.object, err = w.settled(ctx, s.object, wish{Config: to}); err != nil {
			return wrongf("the next apply: %v", err)
		}
	} else if err := w.finishWarned(ctx, s, r, a.said, c.fault); err != nil {
		return err
	}
	if err := w.verify(ctx, s, before, rotated); err != nil {
		return err
	}
	if judged != nil {
		r.Outcome = missed
	}
	return nil
}

// halfway judges what stands after an update, whether it failed or not: one of
// the Secret's two passwords is the one from before, or the rotation is done.
func (w *worker) halfway(ctx context.Context, s *standing, before *evidence, said *verdicts) error {
	stands, err := w.lab.evidence(ctx, s.name)
	if err != nil {
		return err
	}
	if why := stands.lost(before, true); why != "" {
		return lostf("%s", why)
	}
	if stands.material["admin_password_next"] != "" && stands.material["admin_password"] != before.material["admin_password"] {
		return lostf("a rotation is under way, and the password from before it is gone")
	}
	return w.leaks(s.object, stands, said)
}

// tryRemove destroys an instance, disturbed, and then again if that failed.
func (w *worker) tryRemove(ctx context.Context, c cell, r *result) error {
	s, _, err := w.instance(ctx, c.operation)
	if err != nil {
		return err
	}
	w.forget(c.operation)
	if c.fault.lasting {
		// The limits of a destroy are the state's.
		if s.object, err = w.settled(ctx, s.object, wish{Config: c.during(s.config)}); err != nil {
			return err
		}
	}
	before, err := w.lab.evidence(ctx, s.name)
	if err != nil {
		return err
	}
	a := &attempt{}
	rule := c.rule(s.name)
	a.record, a.mark, err = w.disturbed(&rule, func(ready func() error) (err error) {
		a.object, a.said, err = w.carry(ctx, c, s.object, wish{c.during(s.config), true}, ready)
		return err
	})
	if err != nil {
		return err
	}
	judged := a.fires(c, r, s.name)
	if p, ok := errors.AsType[*problem](judged); ok && p.outcome != missed {
		return judged
	}
	if leak := before.leakIn(a.object, a.said); leak != "" {
		return lostf("%s", leak)
	}
	r.Outcome = healed
	if a.said.failed() {
		if a.object == nil {
			return lostf("a failed destroy forgot the instance")
		}
		r.Outcome = next
		if _, err := w.settled(ctx, a.object, wish{s.config, true}); err != nil {
			return wrongf("the next destroy: %v", err)
		}
	}
	if err := w.nothingLeft(ctx, s.name); err != nil {
		return lostf("%v", err)
	}
	return judged
}

// tryLook looks at an instance, disturbed: it sees what stands, or it fails and
// nothing has changed.
func (w *worker) tryLook(ctx context.Context, c cell, r *result) error {
	s, _, err := w.instance(ctx, c.operation)
	if err != nil {
		return err
	}
	undisturbed, said, err := w.look(ctx, c.operation, s, args{}, nothing)
	if err != nil || said.failed() {
		return wrongf("undisturbed: %s, %v", said.text(), err)
	}
	a := &attempt{}
	name := s.name
	if c.operation.look == lookPlanCreate {
		name = newName()
	}
	rule := c.rule(name)
	a.record, a.mark, err = w.disturbed(&rule, func(ready func() error) (err error) {
		a.object, a.said, err = w.look(ctx, c.operation, s, args{"name": name}, ready)
		return err
	})
	if err != nil {
		return err
	}
	judged := a.fires(c, r, name)
	if judged != nil {
		return judged
	}
	for _, request := range a.record {
		if !strings.Contains("GET WATCH", request.Method) {
			return wrongf("a look writes: %s %s", request.Method, request.Path)
		}
	}
	stands, err := w.lab.evidence(ctx, s.name)
	if err != nil {
		return err
	}
	if leak := stands.leakIn(nil, a.said); leak != "" {
		return lostf("%s", leak)
	}
	r.Outcome = healed
	if a.said.failed() {
		r.Outcome = next
		a.object, said, err = w.look(ctx, c.operation, s, args{"name": name}, nothing)
		if err != nil || said.failed() {
			return wrongf("the next look: %s, %v", said.text(), err)
		}
	}
	if c.operation.look == lookPlanCreate {
		return nil // another name, so another plan
	}
	return w.same(ctx, undisturbed, a.object)
}

// same judges that two looks have seen the same.
func (w *worker) same(ctx context.Context, a, b *object) error {
	walk, err := w.core.walk(ctx, &verdicts{})
	if err != nil {
		return err
	}
	if a == nil && b == nil {
		return nil
	}
	if a == nil || b == nil {
		return lostf("the look sees %v instead of %v", b, a)
	}
	differs, err := walk.differs(a, b)
	if differs != "" {
		return wrongf("the look sees another %s", differs)
	}
	return err
}

// look reads, imports or plans. Of a plan it returns the planned state.
func (w *worker) look(ctx context.Context, o operation, s *standing, changes args, ready func() error) (*object, *verdicts, error) {
	said := &verdicts{}
	walk, err := w.core.walk(ctx, said)
	if err != nil {
		return nil, said, err
	}
	planned := func(prior *object, config args) (*object, *verdicts, error) {
		p, err := walk.plan(ctx, prior, config)
		if err != nil || said.failed() {
			return nil, said, err
		}
		kept, err := walk.keep(p.state, p.private, p.identity, false)
		return kept, said, err
	}
	config := s.config.with(changes)
	if o.look == lookRead {
		// So that an older answer exists.
		if _, err := walk.refresh(ctx, s.object); err != nil || said.failed() {
			return nil, said, err
		}
	}
	if err := ready(); err != nil {
		return nil, said, err
	}
	switch o.look {
	case lookRead:
		seen, err := walk.refresh(ctx, s.object)
		return seen, said, err
	case lookImport:
		seen, err := walk.importObject(ctx, namespace+"/"+s.name)
		return seen, said, err
	case lookPlanCreate:
		return planned(nil, config)
	case lookPlanGrow:
		return planned(s.object, config.with(args{"allocated_storage": 100}))
	default:
		return planned(s.object, nil)
	}
}
