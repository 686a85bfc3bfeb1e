package stack

import (
	"context"
	"fmt"
)

// A step of a start. It runs once the steps in after have succeeded, beside
// the others.
type step struct {
	name  string
	after []string
	run   func(context.Context) error
}

// runSteps runs all steps and returns the first error; the steps that still
// run then are told through their context, and waited for.
func runSteps(ctx context.Context, steps []step) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := map[string]chan struct{}{}
	for _, s := range steps {
		done[s.name] = make(chan struct{})
	}
	for _, s := range steps {
		for _, other := range s.after {
			if done[other] == nil {
				return fmt.Errorf("step %s comes after %s, which is no step", s.name, other)
			}
		}
	}
	ended := make(chan struct{})
	for _, s := range steps {
		go func() {
			defer func() { ended <- struct{}{} }()
			for _, other := range s.after {
				select {
				case <-done[other]:
				case <-ctx.Done():
					return
				}
			}
			if err := s.run(ctx); err != nil {
				cancel(fmt.Errorf("start %s: %w", s.name, err)) // only the first counts
				return
			}
			close(done[s.name])
		}()
	}
	for range steps {
		<-ended
	}
	return context.Cause(ctx)
}
