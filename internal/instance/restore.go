package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// restore makes the VM of an instance anew, on the instance's own kept disks,
// with the same CA, password and hardware address.
func (w *work) restore(ctx context.Context, accepted func()) error {
	s, st := w.store, w.st
	recorded := w.recorded()
	if err := st.restorable(w.key); err != nil {
		return err
	}
	var err error
	if st.held, err = parseCredentials(st.credentials); err != nil {
		return err
	}
	a := ascent{spec: w.wanted, key: w.key, stands: st, restored: true}
	if a.premises, err = w.restoredPremises(ctx); err != nil {
		return err
	}
	if err := w.prepareDocument(ctx); err != nil {
		return err
	}
	desired := a.desired()
	desired.StorageGiB = vm.RequestGiB(st.data)
	desired.DataVolumeUID = string(st.data.UID)
	desired.AvailableSince = time.Now()
	desired.Halted = !w.wanted.Running
	desired.PasswordVersion, desired.PasswordRotation = recorded.version, recorded.rotation
	desired.ConfigHash = w.after.hash()
	st.vm, err = s.buildVM(ctx, a, desired)
	if err == nil || errors.Is(err, errUnsettled) {
		accepted()
	}
	if err != nil {
		return err
	}
	if w.wanted.Running {
		if err := w.awaitBooted(ctx); err != nil {
			return w.takeBack(ctx, err)
		}
	}
	// What else is wanted of it is an update like any other.
	if st.data, err = s.rereadClaim(ctx, st); err != nil {
		return err
	}
	if err := w.carryOut(ctx); err != nil {
		return w.takeBack(ctx, err)
	}
	return w.conclude(ctx)
}

// restorable says why the VM cannot be made anew: without the data, or without
// what the Secret holds, it would be another instance.
func (st *standing) restorable(key Key) error {
	const keep = "Nothing was changed."
	switch {
	case st.data == nil:
		return refuse("`terraform destroy` removes what is left; then create the instance anew.",
			"update instance %s: its virtual machine %s and its data volume %s are gone", key, st.names.VM, st.names.DataVolume)
	case !vm.Ours(st.data, key.Name) || st.data.Annotations[vm.AnnotationInstanceID] != key.InstanceID:
		return refuse(keep+" Find out whose the volume is. `terraform state rm` forgets the instance here without touching anything.",
			"update instance %s: its virtual machine %s is gone, and volume %s does not belong to it", key, st.names.VM, st.names.DataVolume)
	case st.credentials == nil:
		return refuse(keep+" Restore the Secret from a backup, and apply again.",
			"update instance %s: its virtual machine %s and its secret %s are gone", key, st.names.VM, st.names.Credentials)
	}
	return nil
}

// restoredPremises are what the VM was made from: of a root disk that was kept
// the disk itself tells, else a new one is made from the image.
func (w *work) restoredPremises(ctx context.Context) (premises, error) {
	modes := w.st.data.Spec.AccessModes
	if w.st.os == nil {
		p, err := w.store.settlePremises(ctx, w.wanted)
		p.modes = modes
		return p, err
	}
	kept := Image{ID: w.st.os.Annotations[vm.AnnotationImageID], DiskGiB: vm.RequestGiB(w.st.os)}
	if w.st.os.Spec.StorageClassName != nil {
		kept.StorageClass = *w.st.os.Spec.StorageClassName
	}
	if kept.ID == "" {
		// A disk that CDI made does not say from which image.
		p, err := w.store.settlePremises(ctx, w.wanted)
		if err != nil {
			return premises{}, err
		}
		kept.ID = p.image.ID
	}
	if kept.StorageClass == "" {
		return premises{}, refuse(fmt.Sprintf("It holds no data: remove it, and the next apply makes a new one: kubectl -n %s delete pvc %s", w.st.key.Namespace, w.st.os.Name),
			"make virtual machine of instance %s anew: its root disk %s names no storage class", w.key, w.st.os.Name)
	}
	return premises{image: kept, modes: modes}, nil
}
