package instance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// errUnsettled says that the VM's creation may or may not have taken effect,
// and that the API server could not be asked any more.
var errUnsettled = errors.New("the virtual machine may have been created: the API server did not answer any more")

func machineResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: kubevirtv1.GroupVersion.Group, Version: kubevirtv1.GroupVersion.Version, Resource: "virtualmachines"}
}

// postVM creates the VM. An answer that leaves open whether it took effect is
// settled by reading; only then is the request repeated.
func (s *Store) postVM(ctx context.Context, a ascent, manifest *unstructured.Unstructured) (*kubevirtv1.VirtualMachine, error) {
	wait := s.backoff()
	end := time.Now().Add(s.pace.patience)
	var cause error
	failed := func(err error) error {
		return fmt.Errorf("create vm %s/%s: %w", a.spec.Namespace, a.stands.names.VM, err)
	}
	for {
		if err := s.stillOwner(ctx, a.key); err != nil {
			return nil, err
		}
		s.report(ctx, "creating virtual machine "+a.stands.names.VM)
		created, posted := s.post(ctx, manifest)
		if posted == nil {
			return created, nil
		}
		if refused(posted) && !apierrors.IsAlreadyExists(posted) && !apierrors.IsConflict(posted) {
			return nil, failed(posted)
		}
		// "deadline exceeded" says less than what the server had answered before.
		if cause == nil || ctx.Err() == nil {
			cause = posted
		}
		found, err := s.settleVM(ctx, a)
		if err != nil {
			return nil, failed(fmt.Errorf("%w: %w", errUnsettled, cause))
		}
		if found != nil {
			return found, a.accept(found)
		}
		// It is certain that no VM stands.
		if time.Now().After(end) || wait.pause(ctx, retryAfter(posted)) != nil {
			return nil, failed(cause)
		}
	}
}

// post sends the VM as a manifest of exactly what is meant, and reads it typed.
func (s *Store) post(ctx context.Context, manifest *unstructured.Unstructured) (*kubevirtv1.VirtualMachine, error) {
	answer, err := s.client.Dynamic.Resource(machineResource()).Namespace(manifest.GetNamespace()).
		Create(ctx, manifest, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil {
		return nil, err
	}
	created := &kubevirtv1.VirtualMachine{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, created); err != nil {
		return nil, fmt.Errorf("read created vm: %w", err)
	}
	return created, nil
}

// settleVM finds out whether the VM stands, however long the API server is
// away: until the deadline, and then once more for a moment, since the answer
// decides what has to be remembered.
func (s *Store) settleVM(ctx context.Context, a ascent) (*kubevirtv1.VirtualMachine, error) {
	wait := s.backoff()
	for ctx.Err() == nil {
		found, err := s.getVM(ctx, a.spec.Namespace, a.stands.names.VM)
		if err == nil {
			return found, nil
		}
		if refused(err) && !transient(err) && !unserved(err) {
			return nil, err
		}
		if wait.pause(ctx, 0) != nil {
			break
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.pace.settle)
	defer cancel()
	return s.getVM(last, a.spec.Namespace, a.stands.names.VM)
}

// unserved says whether a 404 is about the whole API group, as while KubeVirt's
// definitions are replaced.
func unserved(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && status.Status().Code == http.StatusNotFound && !objectNotFound(err)
}
