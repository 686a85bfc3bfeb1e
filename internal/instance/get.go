package instance

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/wso2/terraform-provider-dbaas/internal/pki"
	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// Get reads an instance. ErrNotFound says that nothing of it stands any more;
// a virtual machine that was lost while its data volume or credentials remain
// is an instance that has failed.
func (s *Store) Get(ctx context.Context, key Key) (*Instance, error) {
	st, state, err := s.examine(ctx, key)
	if err != nil {
		return nil, err
	}
	i, err := st.instance(state)
	if err != nil {
		return nil, err
	}
	if i.OperatorManaged {
		return i, s.readOperatorSecret(ctx, i)
	}
	return i, nil
}

// examine reads what stands and judges it: five requests in one concurrent
// round for an instance that is where it is meant to be. A second round is for
// what only other instances have to tell: what their metrics are read through,
// why they are not available, the disks that another name was given, and
// whether the DBaaS operator knows of what is not this provider's beyond doubt.
func (s *Store) examine(ctx context.Context, key Key) (*standing, vm.State, error) {
	st := &standing{key: key, names: vm.NamesOf(key.Name)}
	first, fctx := errgroup.WithContext(ctx)
	s.standNamed(fctx, first, st)
	s.standRunning(fctx, first, st)
	if err := first.Wait(); err != nil {
		return nil, vm.State{}, err
	}
	if st.gone(key) {
		return nil, vm.State{}, wrap(ErrNotFound, "get instance %s", key)
	}
	data, _ := st.takeDiskNames()
	// All of this is judged before the second round begins to write into st.
	unclear := st.vm == nil || !vm.Ours(st.vm, key.Name)
	on, _ := st.monitored()
	published := on && !st.operatorManaged()
	seen := st.observed()
	seen.DataClaimMissing = seen.DataClaimMissing && !data // or it has another name
	state := vm.Assess(seen)
	unwell := st.vm != nil && !state.Available && state.Status != vm.StatusStopped

	var closer vm.Observed
	second, sctx := errgroup.WithContext(ctx)
	s.standDisks(sctx, second, st, data, false)
	if unclear {
		second.Go(func() error { return s.standBeside(sctx, st) })
	}
	if published {
		second.Go(func() (err error) {
			st.published, err = s.outlets(sctx, key)
			return err
		})
	}
	if unwell {
		second.Go(func() error {
			s.lookCloser(sctx, st, &closer)
			return nil
		})
	}
	if err := second.Wait(); err != nil {
		return nil, vm.State{}, err
	}
	if st.strange() {
		return nil, vm.State{}, st.stranger("get", "virtual machine", st.names.VM)
	}
	seen = st.observed()
	seen.OSClaim, seen.Events, seen.EventsUnread = closer.OSClaim, closer.Events, closer.EventsUnread
	seen.Console, seen.ConsoleUnread = closer.Console, closer.ConsoleUnread
	return st, vm.Assess(seen), nil
}

// gone says whether nothing of the instance stands: neither VM, nor data
// volume, nor credentials Secret. For a caller that remembers an instance id,
// only what carries that id counts; another instance of the same name is not
// the one that it remembers.
func (st *standing) gone(key Key) bool {
	if key.InstanceID == "" {
		return st.vm == nil && !st.anythingOurs("")
	}
	if st.vm != nil && st.vm.Annotations[vm.AnnotationInstanceID] == key.InstanceID {
		return false
	}
	return !st.anythingOurs(key.InstanceID)
}

// anythingOurs says whether credentials Secret or data volume are ours, with
// the given instance id if one is given.
func (st *standing) anythingOurs(instanceID string) bool {
	matches := func(id string) bool { return instanceID == "" || id == instanceID }
	if st.credentials != nil && vm.Ours(st.credentials, st.key.Name) && matches(st.credentials.Annotations[vm.AnnotationInstanceID]) {
		return true
	}
	return st.data != nil && vm.Ours(st.data, st.key.Name) && matches(st.data.Annotations[vm.AnnotationInstanceID])
}

// instance puts together what was read.
func (st *standing) instance(state vm.State) (*Instance, error) {
	spec, err := st.spec()
	if err != nil {
		return nil, err
	}
	instanceID, ownerID := st.identity()
	i := &Instance{
		Spec:            spec,
		InstanceID:      instanceID,
		OwnerID:         ownerID,
		Names:           st.names,
		Status:          string(state.Status),
		Reason:          string(state.Reason),
		Detail:          state.Detail,
		Address:         state.Address,
		VCPU:            spec.Class.VCPU,
		MemoryMiB:       spec.Class.MemoryMiB,
		MaxConnections:  spec.Class.MaxConnections,
		EverAvailable:   st.everAvailable(),
		OperatorManaged: st.operatorManaged(),
		GuestKnown:      st.cloudInit != nil,
		MachineKnown:    st.vm != nil,
	}
	if i.EverAvailable || state.Available {
		// The guest becomes ready with the requested major only, never another.
		i.EngineVersionActual = spec.EngineVersion
	}
	i.Names.MetricsService, i.Names.ServiceMonitor = st.publishedNames()
	st.readCredentials(i)
	return i, nil
}

// readCredentials takes from the Secret what is there. A Secret that is gone or
// lacks something is not an error here: after the instance was available that
// is legitimate, and before it the next create says what is wrong.
func (st *standing) readCredentials(i *Instance) {
	if st.credentials == nil {
		i.SecretStatus, i.SecretReason = SecretImpaired, "the Secret does not exist"
		return
	}
	data := st.credentials.Data
	i.LastAddress = string(data[keyHost])
	if i.MasterUsername == "" {
		i.MasterUsername = string(data[keyUser])
	}
	if i.Master.Mode == PasswordGenerated || i.OperatorManaged {
		i.MasterPassword = string(data[keyPassword])
	}
	if certificate, err := pki.ParseCertificate(string(data[keyCACert])); err == nil {
		i.CACertPEM, i.CAValidUntil = string(data[keyCACert]), certificate.NotAfter
	}
	i.SecretStatus = SecretActive
	if i.OperatorManaged {
		return
	}
	if _, err := parseCredentials(st.credentials); err != nil {
		i.SecretStatus, i.SecretReason = SecretImpaired, err.Error()
		if secret, ok := errors.AsType[*SecretError](err); ok {
			i.SecretReason = "key " + secret.Key + " " + secret.Problem
		}
	}
}
