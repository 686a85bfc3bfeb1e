package instance

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// standing is what stands on the cluster under an instance's names, whoever
// made it. What does not exist is nil.
type standing struct {
	key   Key
	names vm.Names // disks as the VM names them, if there is one

	vm          *kubevirtv1.VirtualMachine
	vmi         *kubevirtv1.VirtualMachineInstance
	credentials *corev1.Secret
	cloudInit   *corev1.Secret
	data        *corev1.PersistentVolumeClaim
	os          *corev1.PersistentVolumeClaim
	// operator says that a DBInstance of this name exists.
	operator bool

	// interrupted says that a rotation of the password was under way at first.
	interrupted bool

	// ended is the machine that an update has stopped: whatever is still told of
	// it is old.
	ended types.UID
	// retained says that a delete keeps data volume and credentials Secret.
	retained bool

	// published is what stands of the metrics' objects; nil when nobody has looked.
	published []outlet

	// held is the parsed content of credentials once the Secret was settled.
	held credentials
}

// stand reads everything in one concurrent round; a second one is needed only
// where the VM's disks do not have our names.
func (s *Store) stand(ctx context.Context, key Key) (*standing, error) {
	return s.standWith(ctx, key, s.standRunning)
}

// standHalted is stand without the machine that may run, for a create: it
// continues nothing that runs, and reads that anew when it waits.
func (s *Store) standHalted(ctx context.Context, key Key) (*standing, error) {
	return s.standWith(ctx, key, func(context.Context, *errgroup.Group, *standing) {})
}

func (s *Store) standWith(ctx context.Context, key Key, more func(context.Context, *errgroup.Group, *standing)) (*standing, error) {
	st := &standing{key: key, names: vm.NamesOf(key.Name)}
	group, gctx := errgroup.WithContext(ctx)
	s.standNamed(gctx, group, st)
	more(gctx, group, st)
	group.Go(func() error { return s.standBeside(gctx, st) })
	group.Go(func() (err error) {
		st.os, err = s.getClaim(gctx, key.Namespace, st.names.OSVolume)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	data, os := st.takeDiskNames()
	group, gctx = errgroup.WithContext(ctx)
	s.standDisks(gctx, group, st, data, os)
	return st, group.Wait()
}

// standNamed reads, by the names that the provider gives, what an instance's
// attributes are made of, except for the machine that runs.
func (s *Store) standNamed(ctx context.Context, group *errgroup.Group, st *standing) {
	key := st.key
	secrets := s.client.Core.Secrets(key.Namespace)
	group.Go(func() (err error) {
		st.vm, err = s.getVM(ctx, key.Namespace, st.names.VM)
		return err
	})
	group.Go(func() (err error) {
		st.credentials, err = find(ctx, s, query{"secret", key.Namespace, st.names.Credentials}, secrets.Get)
		return err
	})
	group.Go(func() (err error) {
		st.cloudInit, err = find(ctx, s, query{"secret", key.Namespace, st.names.CloudInit}, secrets.Get)
		return err
	})
	group.Go(func() (err error) {
		st.data, err = s.getClaim(ctx, key.Namespace, st.names.DataVolume)
		return err
	})
}

// standRunning reads the machine that runs.
func (s *Store) standRunning(ctx context.Context, group *errgroup.Group, st *standing) {
	group.Go(func() (err error) {
		st.vmi, err = find(ctx, s, query{"vmi", st.key.Namespace, st.names.VM}, s.client.VirtualMachines.VirtualMachineInstances(st.key.Namespace).Get)
		return err
	})
}

// standBeside reads whether the DBaaS operator has an instance of this name.
func (s *Store) standBeside(ctx context.Context, st *standing) (err error) {
	st.operator, err = s.operatorInstance(ctx, st.key)
	return err
}

// takeDiskNames goes by the VM for the names of its disks, and says which of
// them are not those that the provider gives.
func (st *standing) takeDiskNames() (data, os bool) {
	if st.vm == nil {
		return false, false
	}
	disks := vm.DisksOf(st.vm)
	if disks.DataVolume != st.names.DataVolume {
		st.names.DataVolume, st.data, data = disks.DataVolume, nil, disks.DataVolume != ""
	}
	if disks.OSVolume != st.names.OSVolume {
		st.names.OSVolume, st.os, os = disks.OSVolume, nil, disks.OSVolume != ""
	}
	return data, os
}

// standDisks reads the claims of a VM that names them otherwise.
func (s *Store) standDisks(ctx context.Context, group *errgroup.Group, st *standing, data, os bool) {
	if data {
		group.Go(func() (err error) {
			st.data, err = s.getClaim(ctx, st.key.Namespace, st.names.DataVolume)
			return err
		})
	}
	if os {
		group.Go(func() (err error) {
			st.os, err = s.getClaim(ctx, st.key.Namespace, st.names.OSVolume)
			return err
		})
	}
}

// query names one object to read.
type query struct{ kind, namespace, name string }

// find reads one object; nil without an error means that it does not exist.
func find[T any](ctx context.Context, s *Store, q query, get func(context.Context, string, metav1.GetOptions) (*T, error)) (*T, error) {
	found, err := retry(ctx, s, func(ctx context.Context) (*T, error) { return get(ctx, q.name, metav1.GetOptions{}) })
	if objectNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %s/%s: %w", q.kind, q.namespace, q.name, err)
	}
	return found, nil
}

func (s *Store) getVM(ctx context.Context, namespace, name string) (*kubevirtv1.VirtualMachine, error) {
	return find(ctx, s, query{"vm", namespace, name}, s.client.VirtualMachines.VirtualMachines(namespace).Get)
}

func (s *Store) getClaim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return find(ctx, s, query{"claim", namespace, name}, s.client.Core.PersistentVolumeClaims(namespace).Get)
}

// operatorInstance says whether the DBaaS operator has an instance of this
// name. Where it is not installed, or its objects may not be read, the labels
// of the VM decide alone.
func (s *Store) operatorInstance(ctx context.Context, key Key) (bool, error) {
	_, err := retry(ctx, s, func(ctx context.Context) (any, error) {
		return s.client.Dynamic.Resource(operatorResource()).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	})
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsNotFound(err) || apierrors.IsForbidden(err):
		s.goWithout(ctx, "not asking whether the DBaaS operator has instance "+key.String(), err)
		return false, nil
	default:
		return false, fmt.Errorf("get dbinstance %s: %w", key, err)
	}
}

// operatorManaged says whether the DBaaS operator made what stands.
func (st *standing) operatorManaged() bool {
	return st.operator || (st.vm != nil && vm.OperatorManaged(st.vm))
}

// everAvailable says whether the instance served at some time: then there is
// data to protect. Besides the VM's annotation a Secret of ours without CA key
// tells, since the key is removed only then.
func (st *standing) everAvailable() bool {
	if st.vm != nil && vm.EverAvailable(st.vm) {
		return true
	}
	if st.credentials == nil {
		// The Secret may be removed only after the instance was available; whoever
		// did it earlier leaves a volume of which one had better assume so.
		return st.data != nil && vm.Ours(st.data, st.key.Name)
	}
	_, unfinished := st.credentials.Data[keyCAKey]
	return vm.Ours(st.credentials, st.key.Name) && !unfinished
}

// identity returns the instance id that the objects carry, or an empty string
// when nothing of ours stands. Secret, VM and data volume are asked in this
// order: the Secret is the truth.
func (st *standing) identity() (instanceID, ownerID string) {
	if st.credentials != nil && vm.Ours(st.credentials, st.key.Name) {
		id := st.credentials.Annotations[vm.AnnotationInstanceID]
		if id == "" {
			id = string(st.credentials.Data[keyInstanceID])
		}
		return id, st.credentials.Annotations[vm.AnnotationOwner]
	}
	if st.vm != nil && vm.Ours(st.vm, st.key.Name) {
		return st.vm.Annotations[vm.AnnotationInstanceID], ""
	}
	if st.data != nil && vm.Ours(st.data, st.key.Name) {
		return st.data.Annotations[vm.AnnotationInstanceID], ""
	}
	return "", ""
}
