package instance

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// Delete removes an instance and waits until nothing of it is left. What is
// not the caller's is left alone and told in the warnings. A refusal comes
// before the first request that changes anything.
func (s *Store) Delete(ctx context.Context, r DeleteRequest) (warnings []string, err error) {
	st, err := s.stand(ctx, r.Key)
	if err != nil {
		return nil, err
	}
	if st.gone(r.Key) && !st.residue() {
		return nil, nil
	}
	if st.operatorManaged() {
		return nil, st.guard(r.Key)
	}
	if r.InstanceID == "" {
		return nil, refuse("Import the instance again.", "delete instance %s: the state does not say which instance it is", r.Key)
	}
	if why := st.foreign(r.Key); why != "" {
		return []string{fmt.Sprintf("instance %s was left as it stands: %s; this state has forgotten it, and `terraform import` takes it in again", r.Key, why)}, nil
	}
	if err := st.guardDelete(r); err != nil {
		return nil, err
	}
	// What was never available holds no data.
	st.retained = st.everAvailable() && (r.Retain || st.vm != nil && vm.ReadRecord(st.vm).Retain)
	if err := s.remove(ctx, st); err != nil {
		return nil, err
	}
	return st.kept(), nil
}

// kept tells what a delete that retains the data has left.
func (st *standing) kept() []string {
	if !st.retained {
		return nil
	}
	return []string{fmt.Sprintf("volume %s and secret %s of instance %s were kept, as deletion_policy = \"retain\" wants it; an instance created under the same name takes them over. "+
		"To remove them for good: kubectl -n %s delete pvc/%s secret/%s",
		st.names.DataVolume, st.names.Credentials, st.key, st.key.Namespace, st.names.DataVolume, st.names.Credentials)}
}

// residue says whether something of ours stands although VM, data volume and
// credentials are gone: an earlier delete got that far.
func (st *standing) residue() bool {
	return (st.cloudInit != nil && vm.Ours(st.cloudInit, st.key.Name)) || (st.os != nil && vm.Ours(st.os, st.key.Name))
}

// guardDelete protects what holds data.
func (st *standing) guardDelete(r DeleteRequest) error {
	if !st.everAvailable() {
		return nil
	}
	protected := st.vm != nil && vm.ReadRecord(st.vm).DeletionProtection
	switch {
	case protected:
		return refuse("Set deletion_protection = false and apply; then delete.",
			"delete instance %s: it is protected against deletion", r.Key)
	case r.Intent != IntentDestroy && r.Intent != IntentRename:
		return refuse("If the resource is tainted, `terraform untaint` keeps the instance. If it is really to be replaced, destroy it first and then create it.",
			"replace instance %s: it was available and holds data", r.Key)
	}
	return nil
}

// remove deletes in an order in which each step is possible and the identity
// lasts longest: machine, what its metrics were read through, volumes, Secrets.
func (s *Store) remove(ctx context.Context, st *standing) error {
	// While the VM stands it vouches for a disk that came without labels.
	if err := s.labelDisk(ctx, st); err != nil {
		return err
	}
	if err := s.removeMachine(ctx, st); err != nil {
		return err
	}
	if err := s.withdraw(ctx, st); err != nil {
		return err
	}
	if err := s.removeVolumes(ctx, st); err != nil {
		return err
	}
	return s.removeSecrets(ctx, st)
}

func (s *Store) removeMachine(ctx context.Context, st *standing) error {
	var doomed []relic
	if st.vm != nil {
		s.report(ctx, "deleting virtual machine "+st.names.VM)
		doomed = append(doomed, relicOf("virtual machine", st.vm, s.client.VirtualMachines.VirtualMachines(st.key.Namespace)))
	}
	if st.vmi != nil {
		// It goes with its VM. Volumes of a living machine cannot be deleted, or
		// come back.
		machine := relicOf("running instance", st.vmi, s.client.VirtualMachines.VirtualMachineInstances(st.key.Namespace))
		machine.erase = nil
		doomed = append(doomed, machine)
	}
	return s.eraseAll(ctx, doomed)
}

// removeVolumes reads the volumes once more after the VM is gone: Harvester
// may have made them only after the first look. Only what has our label is
// ours, and of data only what has this instance's id.
func (s *Store) removeVolumes(ctx context.Context, st *standing) error {
	claims := s.client.Core.PersistentVolumeClaims(st.key.Namespace)
	var doomed []relic
	volume, err := s.dataVolume(ctx, st)
	if err != nil {
		return err
	}
	if volume != nil && vm.Ours(volume, st.key.Name) {
		doomed = append(doomed, relicOf("data volume", volume, unstructuredDeleter{s.client.Dynamic.Resource(dataVolumeResource()).Namespace(st.key.Namespace)}))
	}
	for _, name := range []string{st.names.DataVolume, st.names.OSVolume} {
		if name == "" || st.retained && name == st.names.DataVolume {
			continue
		}
		claim, err := find(ctx, s, query{"claim", st.key.Namespace, name}, claims.Get)
		if err != nil {
			return err
		}
		if claim == nil || !vm.Ours(claim, st.key.Name) {
			continue
		}
		if name == st.names.DataVolume && claim.Annotations[vm.AnnotationInstanceID] != st.key.InstanceID {
			continue
		}
		s.report(ctx, "deleting volume "+name)
		doomed = append(doomed, relicOf("volume", claim, claims))
	}
	return s.eraseAll(ctx, doomed)
}

// removeSecrets comes last: until everything else is gone the credentials
// Secret says whose it is.
func (s *Store) removeSecrets(ctx context.Context, st *standing) error {
	secrets := s.client.Core.Secrets(st.key.Namespace)
	for _, secret := range []*corev1.Secret{st.cloudInit, st.credentials} {
		if st.retained && secret == st.credentials {
			continue
		}
		if secret == nil || !vm.Ours(secret, st.key.Name) || secret.Annotations[vm.AnnotationInstanceID] != st.key.InstanceID {
			continue
		}
		s.report(ctx, "deleting secret "+secret.Name)
		if err := s.eraseAll(ctx, []relic{relicOf("secret", secret, secrets)}); err != nil {
			return err
		}
	}
	return nil
}
