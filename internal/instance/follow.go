package instance

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// follower sees one object change. It watches, and where watching is refused
// or fails it reads now and then.
type follower[T any] struct {
	kind, name string

	get   func(context.Context, string, metav1.GetOptions) (*T, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// follow sends the object whenever it changes, nil when it is gone, until the
// context ends.
func follow[T any](ctx context.Context, s *Store, f follower[T], out chan<- *T) {
	refusedOnce := false
	for ctx.Err() == nil {
		var events watch.Interface
		if !refusedOnce {
			var err error
			// Without a resource version the watch begins with what stands. It is
			// opened before the read, so that nothing falls between the two.
			events, err = f.watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", f.name).String()})
			refusedOnce = apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)
			s.goWithout(ctx, "reading "+f.kind+" "+f.name+" now and then, instead of watching it", err)
		}
		if found, err := f.get(ctx, f.name, metav1.GetOptions{}); err == nil {
			send(ctx, out, found)
		} else if objectNotFound(err) {
			send(ctx, out, nil)
		}
		if events != nil {
			passOn(ctx, events, out)
			events.Stop()
		}
		if pause(ctx, s.pace.poll) != nil {
			return
		}
	}
}

// passOn forwards the events of one watch until it ends.
func passOn[T any](ctx context.Context, events watch.Interface, out chan<- *T) {
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-events.ResultChan():
			if !open || event.Type == watch.Error {
				return
			}
			object, isObject := any(event.Object).(*T)
			switch {
			case event.Type == watch.Deleted:
				send(ctx, out, nil)
			case isObject:
				send(ctx, out, object)
			}
		}
	}
}

func send[T any](ctx context.Context, out chan<- *T, object *T) {
	select {
	case <-ctx.Done():
	case out <- object:
	}
}
