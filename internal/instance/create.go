package instance

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// Create makes an instance and waits until it is available. An earlier create
// that did not get that far is continued with what it stored.
//
// A nil instance with an error means that nothing but Secrets stands, or that
// another create took the instance over: there is nothing to remember. Once
// the VM may stand, accepted is called with what is known by then, and a later
// failure returns the instance together with the error.
func (s *Store) Create(ctx context.Context, spec Spec, accepted func(*Instance)) (*Instance, error) {
	// All of this before the first write: a failed image leaves no Secret.
	made, err := s.settlePremises(ctx, spec)
	if err != nil {
		return nil, err
	}
	owner := uuid.NewString()
	st, err := s.claimCredentials(ctx, spec, owner)
	if err != nil {
		return nil, err
	}
	a := ascent{
		spec:     spec,
		key:      Key{Namespace: spec.Namespace, Name: spec.Name, InstanceID: st.held.InstanceID, OwnerID: owner},
		stands:   st,
		premises: made,
	}
	if st.held.finished() {
		return s.takeOver(ctx, a, accepted)
	}
	return s.raise(ctx, a, accepted)
}

// takeOver makes an instance of the data and the credentials that a deleted
// one of this name has left: the same database in a new machine.
func (s *Store) takeOver(ctx context.Context, a ascent, accepted func(*Instance)) (*Instance, error) {
	wanted := a.spec
	// No password was set since: the one in force is the one that is wanted.
	wanted.Master.PriorVersion, wanted.Master.PriorRotation = wanted.Master.Version, wanted.Master.Rotation
	w := &work{store: s, st: a.stands, key: a.key, wanted: wanted, creating: true}
	known := a.known()
	known.EverAvailable, known.EngineVersionActual = true, a.spec.EngineVersion
	stands := false
	err := w.restore(ctx, func() {
		stands = true
		accepted(&known)
	})
	if err != nil && (!stands || errors.Is(err, errNotOwner)) {
		return nil, fmt.Errorf("create instance %s from the data that was kept: %w", a.key, err)
	}
	read, readErr := s.getLate(ctx, a.key)
	if readErr != nil {
		known.Warnings = append(known.Warnings, fmt.Sprintf("the instance stands, but could not be read back; the next plan reads it: %v", readErr))
		read = &known
	}
	read.Warnings = append(read.Warnings, w.warnings...)
	return read, err
}

// ascent is an instance on its way from a settled Secret to available.
type ascent struct {
	spec     Spec
	key      Key // with the ids of the settled Secret
	stands   *standing
	premises premises
	// restored says that the instance was available before its VM was lost.
	restored bool
}

// raise brings an instance from its settled Secret to available.
func (s *Store) raise(ctx context.Context, a ascent, accepted func(*Instance)) (*Instance, error) {
	machine, err := s.ensureVM(ctx, a)
	if err != nil && !errors.Is(err, errUnsettled) {
		return nil, a.leftover(err)
	}
	known := a.known()
	accepted(&known)
	if err != nil {
		return &known, &FieldError{Err: err, Advice: "The instance is in the state and marked as tainted, since it may stand: the next apply replaces it. " +
			"To keep it and go on, run `terraform untaint` first."}
	}
	a.stands.vm = machine
	state, err := s.awaitAvailable(ctx, a.stands)
	known.Status, known.Reason, known.Detail = string(state.Status), string(state.Reason), state.Detail
	known.Address = state.Address
	if err != nil {
		return &known, err
	}
	return s.conclude(ctx, a, known)
}

// conclude records that the instance is available and clears away what only
// the first boot needed. From here on only the loss of ownership is a failure.
func (s *Store) conclude(ctx context.Context, a ascent, known Instance) (*Instance, error) {
	known.EverAvailable, known.EngineVersionActual = true, a.spec.EngineVersion
	err := s.complete(ctx, a.key, completion{
		protect: a.spec.DeletionProtection, master: a.spec.Master, address: known.Address,
	})
	if errors.Is(err, errNotOwner) {
		return nil, err
	}
	var warnings []string
	if err != nil {
		warnings = append(warnings, fmt.Sprintf("the instance is available, but material of its first boot could not be cleared away yet; the next apply does it: %v", err))
		if err := s.stillOwner(ctx, a.key); errors.Is(err, errNotOwner) {
			return nil, err
		}
	}
	if a.spec.Monitoring != nil {
		more, err := s.publish(ctx, a.key, metricsOf(a.key, a.spec, known.Address))
		warnings = append(warnings, more...)
		if err != nil {
			warnings = append(warnings, unpublishedWarning(err))
		}
	}
	if !a.spec.Running {
		// The machine was seen available; its database is made. An error would
		// taint what holds it.
		err := s.stopNew(ctx, a.key)
		if errors.Is(err, errNotOwner) {
			return nil, err
		}
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("the instance is available, but still runs although running = false; the next apply stops it: %v", err))
		}
	}
	read, err := s.Get(ctx, a.key)
	if err != nil {
		known.Warnings = append(warnings, fmt.Sprintf("the instance is available, but could not be read back; the next plan reads it: %v", err))
		return &known, nil
	}
	read.Warnings = append(read.Warnings, warnings...)
	return read, nil
}

// known is what can be said of the instance before anything was read back.
func (a ascent) known() Instance {
	spec := a.spec
	spec.Master.Supplied = ""
	i := Instance{
		Spec:           spec,
		InstanceID:     a.key.InstanceID,
		OwnerID:        a.key.OwnerID,
		Names:          vm.NamesOf(a.spec.Name),
		Status:         string(vm.StatusCreating),
		CACertPEM:      a.stands.held.CACert,
		CAValidUntil:   a.stands.held.CAValidUntil,
		SecretStatus:   SecretActive,
		VCPU:           a.spec.Class.VCPU,
		MemoryMiB:      a.spec.Class.MemoryMiB,
		MaxConnections: a.spec.Class.MaxConnections,
		GuestKnown:     true,
		MachineKnown:   true,
	}
	i.Names.MetricsService, i.Names.ServiceMonitor = "", "" // they come last
	if a.spec.Master.Mode == PasswordGenerated {
		i.MasterPassword = a.stands.held.Password
	}
	return i
}

// stopNew stops an instance that has just become available.
func (s *Store) stopNew(ctx context.Context, key Key) error {
	st, err := s.stand(ctx, key)
	if err != nil {
		return err
	}
	if err := st.guard(key); err != nil {
		return err
	}
	if st.vm == nil {
		return fmt.Errorf("stop instance %s: its virtual machine %s was deleted meanwhile; apply again", key, st.names.VM)
	}
	return s.stop(ctx, st)
}

func (a ascent) leftover(err error) error {
	if errors.Is(err, errNotOwner) {
		return fmt.Errorf("create instance %s: %w", a.key, err)
	}
	if field, ok := errors.AsType[*FieldError](err); ok && field.Field == FieldName {
		return err // a VM stands
	}
	secrets := []string{a.stands.names.Credentials}
	if a.stands.cloudInit != nil {
		secrets = append(secrets, a.stands.names.CloudInit)
	}
	return &LeftoverError{Err: err, Namespace: a.spec.Namespace, Secrets: secrets}
}

// ensureVM returns the instance's VM: the one that stands, or a new one whose
// documents it writes before.
func (s *Store) ensureVM(ctx context.Context, a ascent) (*kubevirtv1.VirtualMachine, error) {
	if a.stands.vm == nil {
		if err := s.writeCloudInit(ctx, a); err != nil {
			return nil, err
		}
		return s.buildVM(ctx, a, a.desired())
	}
	// Read once more after the claim: it may be another by now.
	again, err := s.getVM(ctx, a.spec.Namespace, a.stands.names.VM)
	if err != nil {
		return nil, err
	}
	if again == nil {
		return nil, fmt.Errorf("continue instance %s: its virtual machine %s was deleted meanwhile; apply again", a.key, a.stands.names.VM)
	}
	return again, a.accept(again)
}

func (s *Store) buildVM(ctx context.Context, a ascent, desired vm.Desired) (*kubevirtv1.VirtualMachine, error) {
	wanted, err := vm.Build(desired)
	if err != nil {
		return nil, fmt.Errorf("build vm of instance %s: %w", a.key, err)
	}
	manifest, err := vm.Manifest(wanted)
	if err != nil {
		return nil, fmt.Errorf("build vm of instance %s: %w", a.key, err)
	}
	return s.postVM(ctx, a, manifest)
}

// accept checks that a VM that stands is the one that this create continues. It
// may have become available since this create looked first: but whoever marked
// it so cannot finish its Secret any more, which was claimed since, and stops.
func (a ascent) accept(found *kubevirtv1.VirtualMachine) error {
	if !vm.Ours(found, a.key.Name) || found.Annotations[vm.AnnotationInstanceID] != a.key.InstanceID {
		return a.stands.stranger("create", "virtual machine", found.Name)
	}
	if a.restored {
		return nil
	}
	stands := *a.stands
	stands.vm = found
	return stands.admitValues(a.spec, stands.held)
}

func (a ascent) desired() vm.Desired {
	return vm.Desired{
		Namespace: a.spec.Namespace, Name: a.spec.Name,
		InstanceID: a.key.InstanceID,
		ClassName:  a.spec.ClassName, Class: a.spec.Class,
		StorageGiB: a.spec.StorageGiB, OSDiskGiB: a.premises.image.DiskGiB,
		ImageID: a.premises.image.ID, ImageStorageClass: a.premises.image.StorageClass,
		OSImage:     a.spec.OSImage,
		StorageType: a.spec.StorageType, DataAccessModes: a.premises.modes,
		NetworkRef: a.spec.NetworkRef, MAC: a.stands.held.MAC,
		EngineVersion: a.spec.EngineVersion,
		DBName:        a.spec.DBName, MasterUsername: a.stands.held.User, Port: a.spec.Port,
		PasswordMode:       a.spec.Master.Mode,
		PasswordVersion:    a.spec.Master.Version,
		PasswordRotation:   a.spec.Master.Rotation,
		DeletionProtection: a.spec.DeletionProtection,
		Retain:             a.spec.Retain,
		Tags:               a.spec.Tags,
		ConfigHash:         guestConfig(a.spec, a.stands.held).Hash(),
	}
}
