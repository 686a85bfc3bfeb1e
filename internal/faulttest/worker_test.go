package faulttest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/wso2/terraform-provider-dbaas/internal/faultproxy"
)

// worker has a proxy of its own, and the instances on which it tries things.
type worker struct {
	lab      *lab
	core     core
	proxy    *faultproxy.Proxy
	standing map[string]*standing // by operation

	newTerraform func() (*terraform, error)
}

// standing is an instance that is as configured.
type standing struct {
	name   string
	config args
	object *object
	rounds int
}

// newName is one that no other instance has, nor is part of any path.
func newName() string { return "f" + strings.ToLower(rand.Text()[:9]) + "x" }

// wish is what an apply is to bring about: the configuration, or its end.
type wish struct {
	Config  args
	Destroy bool
}

// apply is `terraform apply`, or `terraform destroy`. Between plan and apply it
// calls ready.
func (w *worker) apply(ctx context.Context, o *object, wanted wish, ready func() error) (*object, *verdicts, error) {
	said := &verdicts{}
	first, err := w.core.walk(ctx, said)
	if err != nil {
		return o, said, err
	}
	if o, err = first.refresh(ctx, o); err != nil || said.failed() {
		return o, said, err
	}
	if o == nil && wanted.Destroy {
		return nil, said, nil // nothing to destroy, nothing to ask
	}
	prior := o
	if o != nil && o.Tainted {
		prior = nil // core plans the create of a replace as if there were nothing
	}
	planned, err := first.plan(ctx, prior, wanted.Config)
	if err != nil || said.failed() {
		return o, said, err
	}
	if wanted.Destroy {
		// The plan so far was core's refresh: a configuration that cannot be planned
		// cannot be destroyed.
		prior = o
		if planned, err = first.plan(ctx, o, nil); err != nil || said.failed() {
			return o, said, err
		}
	}
	if prior == o {
		if none, err := first.empty(planned); none || err != nil {
			return o, said, err
		}
	}
	if err := ready(); err != nil {
		return o, said, err
	}
	second, err := w.core.walk(ctx, said)
	if err != nil {
		return o, said, err
	}
	if prior == o {
		after, err := second.apply(ctx, planned)
		return after, said, err
	}
	return w.replace(ctx, second, o, planned, wanted.Config)
}

// replace is what core does with a tainted object: the end of it is applied
// with the private state of the create that was planned.
func (w *worker) replace(ctx context.Context, second *walk, o *object, planned *plan, config args) (*object, *verdicts, error) {
	none := second.stateOf(nil)
	gone, err := second.apply(ctx, &plan{state: none, config: none, private: planned.private, prior: o})
	if err != nil || second.verdicts.failed() {
		if gone != nil {
			gone.Tainted = true
		}
		return gone, second.verdicts, err
	}
	again, err := second.plan(ctx, nil, config)
	if err != nil || second.verdicts.failed() {
		return nil, second.verdicts, err
	}
	made, err := second.apply(ctx, again)
	return made, second.verdicts, err
}

func nothing() error { return nil }

// carry is the apply that a cell disturbs.
func (w *worker) carry(ctx context.Context, c cell, o *object, wanted wish, ready func() error) (*object, *verdicts, error) {
	if c.fault.kills {
		return w.kill(ctx, o, wanted, ready)
	}
	return w.apply(ctx, o, wanted, ready)
}

// settled is an apply that nothing disturbs and that has to succeed.
func (w *worker) settled(ctx context.Context, o *object, wanted wish) (*object, error) {
	after, said, err := w.apply(ctx, o, wanted, nothing)
	if err == nil && said.failed() {
		err = errors.New(said.text())
	}
	return after, err
}

// instance returns the worker's instance for an operation, as it is to be
// before the operation.
func (w *worker) instance(ctx context.Context, o operation) (*standing, args, error) {
	key := o.name
	if o.kind == looks {
		key = "looks"
	}
	s := w.standing[key]
	if s == nil {
		s = &standing{name: newName()}
		s.config = minimal(s.name)
		if o.kind != changes {
			s.config = monitored(s.config)
		}
	}
	from, to := s.config, s.config
	if o.change != nil {
		from, to = o.change(s.config, s.rounds)
	}
	if s.object == nil || !reflect.DeepEqual(from, s.config) {
		var err error
		if s.object, err = w.settled(ctx, s.object, wish{Config: from}); err != nil {
			return nil, nil, fmt.Errorf("prepare instance %s: %w", s.name, err)
		}
	}
	s.config = from
	s.rounds++
	w.standing[key] = s
	return s, to, nil
}

// forget gives an operation's instance up; the next one is a new one.
func (w *worker) forget(o operation) {
	delete(w.standing, o.name)
	if o.kind == looks {
		delete(w.standing, "looks")
	}
}

// end destroys what the worker has made, and says what remained.
func (w *worker) end(ctx context.Context) error {
	var all []error
	for _, s := range w.standing {
		all = append(all, w.destroy(ctx, s))
	}
	w.standing = map[string]*standing{}
	return errors.Join(all...)
}

func (w *worker) destroy(ctx context.Context, s *standing) error {
	if s.config["deletion_protection"] == true {
		s.config = s.config.with(args{"deletion_protection": false})
		open, err := w.settled(ctx, s.object, wish{Config: s.config})
		if err != nil {
			return fmt.Errorf("open instance %s: %w", s.name, err)
		}
		s.object = open
	}
	if _, err := w.settled(ctx, s.object, wish{s.config, true}); err != nil {
		return fmt.Errorf("destroy instance %s: %w", s.name, err)
	}
	return w.nothingLeft(ctx, s.name)
}

// nothingLeft waits for what Kubernetes itself collects.
func (w *worker) nothingLeft(ctx context.Context, name string) error {
	ctx, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	for {
		left, err := w.lab.left(ctx, name)
		if err != nil || len(left) == 0 {
			return err
		}
		for _, object := range left {
			if !strings.HasPrefix(object, "endpoint") {
				return fmt.Errorf("left: %s", strings.Join(left, ", "))
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("left: %s", strings.Join(left, ", "))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// disturbed runs one operation, of which one request is disturbed from the
// moment that ready is called, and returns the record.
func (w *worker) disturbed(r *rule, operate func(ready func() error) error) (record []request, mark int, err error) {
	if err := errors.Join(w.proxy.Clear(), w.proxy.Reset()); err != nil {
		return nil, 0, err
	}
	ready := func() error {
		before, err := w.proxy.Record()
		if err != nil {
			return err
		}
		if len(before) > 0 {
			mark = before[len(before)-1].Index
		}
		if err := w.proxy.Mark(); err != nil || r == nil {
			return err
		}
		return w.proxy.Inject(*r)
	}
	if err := operate(ready); err != nil {
		return nil, 0, errors.Join(err, w.proxy.Clear())
	}
	record, err = w.proxy.Record()
	return record, mark, errors.Join(err, w.proxy.Clear())
}
