package instance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// webhookLag is how long Harvester's webhook may go on refusing what was just
// made possible: it judges by a cache.
const webhookLag = 30 * time.Second

// relic is one object to delete: exactly the one that was looked at.
type relic struct {
	kind, namespace, name string

	uid types.UID
	// look returns the uid of what stands under the name now.
	look func(context.Context) (types.UID, error)
	// erase is nil for what goes by itself and is only waited for.
	erase func(context.Context, metav1.DeleteOptions) error
}

// String names the relic in messages.
func (r relic) String() string { return r.kind + " " + r.namespace + "/" + r.name }

// deleter is what every client of one kind in one namespace offers.
type deleter[T metav1.Object] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (T, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}

func relicOf[T metav1.Object](kind string, object T, client deleter[T]) relic {
	name := object.GetName()
	return relic{
		kind: kind, namespace: object.GetNamespace(), name: name, uid: object.GetUID(),
		look: func(ctx context.Context) (types.UID, error) {
			found, err := client.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			return found.GetUID(), nil
		},
		erase: func(ctx context.Context, o metav1.DeleteOptions) error { return client.Delete(ctx, name, o) },
	}
}

// unstructuredDeleter drops the subresources that the dynamic client takes.
type unstructuredDeleter struct{ client dynamic.ResourceInterface }

// Get reads one object.
func (d unstructuredDeleter) Get(ctx context.Context, name string, o metav1.GetOptions) (*unstructured.Unstructured, error) {
	return d.client.Get(ctx, name, o)
}

// Delete deletes one object.
func (d unstructuredDeleter) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return d.client.Delete(ctx, name, o)
}

// eraseAll deletes the relics and waits until all of them are gone. When time
// runs out the error names what remains.
func (s *Store) eraseAll(ctx context.Context, relics []relic) error {
	for _, r := range relics {
		if r.erase == nil {
			continue
		}
		if err := s.erase(ctx, r); err != nil {
			return err
		}
	}
	wait := backoff{next: s.pace.first, longest: s.pace.poll}
	for {
		left, err := s.remaining(ctx, relics)
		if err == nil && len(left) == 0 {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		if ended := wait.pause(ctx, 0); ended != nil {
			return fmt.Errorf("wait until %s is gone: %w", strings.Join(left, " and "), ended)
		}
	}
}

// erase deletes one relic in the foreground. That it is gone, or that another
// object has its name by now, is success.
func (s *Store) erase(ctx context.Context, r relic) error {
	options := metav1.DeleteOptions{
		PropagationPolicy: new(metav1.DeletePropagationForeground),
		Preconditions:     &metav1.Preconditions{UID: new(r.uid)},
	}
	end := time.Now().Add(webhookLag)
	for {
		_, err := retry(ctx, s, func(ctx context.Context) (struct{}, error) { return struct{}{}, r.erase(ctx, options) })
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		failure := fmt.Errorf("delete %s: %w", r, err)
		passing := apierrors.IsConflict(err) || strings.Contains(err.Error(), "admission webhook")
		if !passing || time.Now().After(end) {
			return failure
		}
		left, err := s.remaining(ctx, []relic{r})
		if err == nil && len(left) == 0 {
			return nil
		}
		if pause(ctx, s.pace.poll) != nil {
			return failure
		}
	}
}

// remaining names the relics that still stand. With an error they are all named.
func (s *Store) remaining(ctx context.Context, relics []relic) ([]string, error) {
	var left []string
	var failure error
	for _, r := range relics {
		uid, err := retry(ctx, s, r.look)
		switch {
		case objectNotFound(err), err == nil && uid != r.uid:
			continue
		case err != nil:
			failure = errors.Join(failure, fmt.Errorf("get %s: %w", r, err))
		}
		left = append(left, r.String())
	}
	return left, failure
}
