package stack

import (
	"context"
	"errors"
	"slices"
	"testing"
)

func TestStepsRunAfterTheOnesTheyNeed(t *testing.T) {
	order := make(chan string, 3)
	note := func(name string) func(context.Context) error {
		return func(context.Context) error { order <- name; return nil }
	}
	err := runSteps(t.Context(), []step{
		{name: "roof", after: []string{"walls", "floor"}, run: note("roof")},
		{name: "walls", after: []string{"floor"}, run: note("walls")},
		{name: "floor", run: note("floor")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := []string{<-order, <-order, <-order}, []string{"floor", "walls", "roof"}; !slices.Equal(got, want) {
		t.Errorf("they ran in the order %v, want %v", got, want)
	}
}

func TestAFailedStepEndsTheOthersAndIsNamed(t *testing.T) {
	broken := errors.New("broken")
	ran := false
	err := runSteps(t.Context(), []step{
		{name: "slow", run: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		{name: "bad", run: func(context.Context) error { return broken }},
		{name: "next", after: []string{"bad"}, run: func(context.Context) error { ran = true; return nil }},
	})
	if !errors.Is(err, broken) || err.Error() != "start bad: broken" {
		t.Errorf("the error is %v, want start bad: broken", err)
	}
	if ran {
		t.Error("a step ran though the one before it had failed")
	}
}

func TestAStepThatNeedsAnUnknownOneIsRefused(t *testing.T) {
	err := runSteps(t.Context(), []step{{name: "roof", after: []string{"wall"}}})
	if err == nil || err.Error() != "step roof comes after wall, which is no step" {
		t.Errorf("the error is %v", err)
	}
}
