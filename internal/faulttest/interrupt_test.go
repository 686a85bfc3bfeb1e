package faulttest

import (
	"context"
	"errors"
	"regexp"
	"strings"
)

// tryTerraform interrupts the real Terraform while a request is held back, and
// lets it converge.
func (w *worker) tryTerraform(ctx context.Context, c cell, r *result) error {
	tf, err := w.newTerraform()
	if err != nil {
		return err
	}
	name := newName()
	r.Instance = name
	from := minimal(name)
	if c.operation.kind != changes {
		from = monitored(from)
	}
	to := from
	if c.operation.kind == changes {
		from, to = c.operation.change(from, 0)
	}
	before := &evidence{name: name}
	if c.operation.kind != creates {
		if err := errors.Join(tf.write(w.proxy.Kubeconfig, from), tf.settled(ctx, applying()...)); err != nil {
			return err
		}
		if before, err = w.lab.evidence(ctx, name); err != nil {
			return err
		}
	}
	if err := tf.write(w.proxy.Kubeconfig, to); err != nil {
		return err
	}
	fired, printed, err := w.interrupt(ctx, c, tf, name)
	r.Said = printed
	if err != nil {
		return err
	}
	left, err := w.lab.evidence(ctx, name)
	if err != nil {
		return err
	}
	if leak := left.leakIn(nil, &verdicts{Warnings: []string{printed}}); leak != "" {
		return lostf("%s", leak)
	}
	r.Outcome = next
	if c.operation.kind == removes {
		err = tf.settled(ctx, destroying()...)
	} else {
		err = w.converge(ctx, tf, r, before, left, c.operation.name == "rotation")
	}
	if err != nil {
		return err
	}
	if err := w.nothingLeft(ctx, name); err != nil {
		return lostf("%v", err)
	}
	if !fired {
		r.Outcome = missed
	}
	return nil
}

// interrupt plans, and applies the plan until the cell's request is held back.
func (w *worker) interrupt(ctx context.Context, c cell, tf *terraform, name string) (fired bool, printed string, err error) {
	planning := []string{"plan", "-input=false", "-no-color", "-out=plan"}
	if c.operation.kind == removes {
		planning = append(planning, "-destroy")
	}
	rule := c.rule(name)
	_, _, err = w.disturbed(&rule, func(ready func() error) error {
		if err := errors.Join(tf.settled(ctx, planning...), ready()); err != nil {
			return err
		}
		_, printed, err = tf.interrupted(ctx, []string{"apply", "-input=false", "-no-color", "plan"}, c.fault.interrupts, func() (bool, error) {
			record, err := w.proxy.Record()
			for _, r := range record {
				fired = fired || r.Fault != ""
			}
			return fired, err
		})
		return err
	})
	return fired, printed, err
}

// converge applies again, in the way that Terraform's words name, and ends the
// instance.
func (w *worker) converge(ctx context.Context, tf *terraform, r *result, before, left *evidence, rotated bool) error {
	code, printed, err := tf.run(ctx, applying()...)
	if err != nil {
		return err
	}
	spaced := regexp.MustCompile(`[\s│]+`).ReplaceAllString(printed, " ")
	it := typeName + ".it"
	switch {
	case code == 0:
		r.How = "applied"
	case strings.Contains(spaced, "terraform untaint"):
		r.How = "untainted"
		err = errors.Join(tf.settled(ctx, "untaint", "-no-color", it), tf.settled(ctx, applying()...))
	case strings.Contains(spaced, "terraform import") && len(before.uids) > 0:
		return wrongf("the state has lost an instance that stood: %s", printed)
	case strings.Contains(spaced, "terraform import"):
		r.How = "imported"
		err = errors.Join(tf.settled(ctx, "import", "-input=false", "-no-color", it, namespace+"/"+left.name), tf.settled(ctx, applying()...))
	default:
		err = wrongf("the next apply: %s", printed)
	}
	if err != nil {
		return err
	}
	stands, err := w.lab.evidence(ctx, left.name)
	if err != nil {
		return err
	}
	if strings.Contains(printed, "1 destroyed") {
		r.How = "replaced once"
	} else if why := stands.lost(left, rotated); why != "" {
		return lostf("%s", why)
	}
	if why := stands.lost(before, rotated); why != "" {
		return lostf("%s", why)
	}
	if leak := stands.leak(); leak != "" {
		return lostf("%s", leak)
	}
	if code, printed, err := tf.run(ctx, "plan", "-detailed-exitcode", "-input=false", "-no-color"); code != 0 || err != nil {
		return wrongf("a second plan: %s, %v", printed, err)
	}
	return tf.settled(ctx, destroying()...)
}
