package labtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// limit is how long a wait may take before the test fails: far longer than
// anything takes, also on a busy machine with virtual machines.
const limit = 10 * time.Minute

// Wait watches object, which only needs a namespace and a name, until ok says
// yes of it, and returns it as it then is. The object need not exist yet. On
// failure it prints the object as it was last seen; what names what was awaited.
func Wait[T client.Object](t testing.TB, lab *Lab, object T, what string, ok func(T) bool) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var last T
	err := follow(ctx, lab.Admin.Client, object, func(event watch.Event) (bool, error) {
		if event.Type == watch.Deleted {
			return false, nil
		}
		seen, err := convert[T](event.Object)
		if err != nil {
			return false, err
		}
		last = seen
		return ok(seen), nil
	})
	if err != nil {
		t.Fatalf("wait for %s of %s: %v; last seen:\n%s", what, client.ObjectKeyFromObject(object), err, show(last))
	}
	return last
}

// WaitGone watches until object, which only needs a namespace and a name, is deleted.
func (l *Lab) WaitGone(t testing.TB, object client.Object) {
	t.Helper()
	if err := l.awaitGone(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func (l *Lab) awaitGone(ctx context.Context, object client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	key := client.ObjectKeyFromObject(object)
	err := l.Admin.Client.Get(ctx, key, object)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	uid := object.GetUID()
	err = follow(ctx, l.Admin.Client, object, func(event watch.Event) (bool, error) {
		seen, ok := event.Object.(client.Object)
		return ok && (event.Type == watch.Deleted || seen.GetUID() != uid), nil
	}, func() (bool, error) {
		err := l.Admin.Client.Get(ctx, key, object)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait until %s is deleted: %w; last seen:\n%s", key, err, show(object))
	}
	return nil
}

// withoutCancel is the context for what a test's cleanup does: its own is over by then.
func withoutCancel(t testing.TB) context.Context { return context.WithoutCancel(t.Context()) }

// follow watches one object and hands the events to done until it says yes. The
// opened functions are asked after each opening of the watch, since a deletion
// before it makes no event.
func follow(ctx context.Context, c client.WithWatch, object client.Object, done func(watch.Event) (bool, error), opened ...func() (bool, error)) error {
	kind, err := c.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	list := new(unstructured.UnstructuredList)
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	for {
		events, err := c.Watch(ctx, list, client.InNamespace(object.GetNamespace()), client.MatchingFields{"metadata.name": object.GetName()})
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		stop, err := consume(events, done, opened)
		events.Stop()
		if stop || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func consume(events watch.Interface, done func(watch.Event) (bool, error), opened []func() (bool, error)) (bool, error) {
	for _, ask := range opened {
		if stop, err := ask(); stop || err != nil {
			return stop, err
		}
	}
	for event := range events.ResultChan() {
		if event.Type == watch.Error {
			return false, apierrors.FromObject(event.Object)
		}
		if stop, err := done(event); stop || err != nil {
			return stop, err
		}
	}
	return false, nil
}

func convert[T client.Object](from apiruntime.Object) (T, error) {
	var to T
	if same, ok := from.(T); ok {
		return same, nil
	}
	content, err := apiruntime.DefaultUnstructuredConverter.ToUnstructured(from)
	if err != nil {
		return to, err
	}
	to = newOf[T]()
	return to, apiruntime.DefaultUnstructuredConverter.FromUnstructured(content, to)
}

func show(object any) string {
	text, err := yaml.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
