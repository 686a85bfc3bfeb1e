package instance

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// Update brings a standing instance to what is wanted and finishes what an
// earlier run left: a create that did not become available, material of the
// first boot, a machine that was lost or stands still between stop and start.
// It restarts the machine once at most, returns when the effect was seen, and
// writes only what differs. With an error it returns the instance as it then
// stands, nil if that could not be read.
func (s *Store) Update(ctx context.Context, key Key, wanted Spec) (*Instance, error) {
	warnings, err := s.update(ctx, key, wanted)
	if errors.Is(err, ErrNotFound) || errors.Is(err, errNotOwner) {
		return nil, err
	}
	read, readErr := s.getLate(ctx, key)
	if readErr != nil {
		return nil, errors.Join(err, fmt.Errorf("read instance %s after its update: %w", key, readErr))
	}
	read.Warnings = append(read.Warnings, warnings...)
	return read, err
}

// getLate reads an instance also when the time is over: what stands is worth
// knowing then.
func (s *Store) getLate(ctx context.Context, key Key) (*Instance, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.pace.settle)
	defer cancel()
	return s.Get(ctx, key)
}

// update repeats the rework, which is harmless, as long as others write to the
// same objects.
func (s *Store) update(ctx context.Context, key Key, wanted Spec) (warnings []string, err error) {
	wait := s.backoff()
	for {
		st, err := s.stand(ctx, key)
		if err != nil {
			return nil, err
		}
		more, err := s.rework(ctx, st, key, wanted)
		warnings = append(warnings, more...)
		// A rotation that was interrupted comes to its end before a newer one begins.
		again := apierrors.IsConflict(err) || err == nil && st.interrupted && wanted.Master.rotates(st.passwordRecord())
		if !again || wait.pause(ctx, 0) != nil {
			return warnings, err
		}
	}
}

func (s *Store) rework(ctx context.Context, st *standing, key Key, wanted Spec) (warnings []string, err error) {
	if err := st.guard(key); err != nil {
		return nil, err
	}
	st.interrupted = st.next() != "" && wanted.Running
	w := &work{store: s, st: st, key: key, wanted: wanted}
	switch {
	case st.gone(key):
		return nil, wrap(ErrNotFound, "update instance %s", key)
	case !st.everAvailable():
		return s.finish(ctx, st, key, wanted)
	case st.vm == nil:
		return w.warnings, w.restore(ctx, func() {})
	case st.dataReplaced():
		return nil, st.refuseReplaced()
	}
	if err := w.prepare(ctx); err != nil {
		return nil, err
	}
	if err := w.carryOut(ctx); err != nil {
		return w.warnings, w.takeBack(ctx, err)
	}
	return w.warnings, w.conclude(ctx)
}

// dataReplaced says whether another claim, or none, stands where the data was.
func (st *standing) dataReplaced() bool {
	recorded := vm.ReadRecord(st.vm).DataVolumeUID
	return recorded != "" && (st.data == nil || string(st.data.UID) != recorded)
}

func (st *standing) refuseReplaced() error {
	return refuse("Nothing was changed. Restore the volume from a backup under another instance, or remove this one with `terraform destroy`.",
		"update instance %s: the volume with its data is gone, and %s is another one", st.key, st.names.DataVolume)
}

// work is one update of an instance that was available and has its VM.
type work struct {
	store  *Store
	st     *standing
	key    Key
	wanted Spec

	// before and after are what the guest's document says.
	before, after guestDocument
	// offline says that the volume must grow while nothing uses it.
	offline bool
	// creating says that a create takes kept data over: once it serves, an error
	// would taint what holds the data.
	creating bool

	warnings []string
}

// prepare writes what takes effect at once, and what the next start will bring.
func (w *work) prepare(ctx context.Context) error {
	s, st := w.store, w.st
	if st.bootstrapLeft() {
		if err := s.complete(ctx, w.key, w.completion()); err != nil {
			return err
		}
		// Its documents are others now.
		again, err := s.stand(ctx, w.key)
		if err != nil {
			return err
		}
		*st = *again
		if st.vm == nil {
			return fmt.Errorf("update instance %s: its virtual machine %s was deleted meanwhile; apply again", w.key, st.names.VM)
		}
	}
	if w.wanted.Monitoring != nil {
		if err := s.admitOutlets(ctx, "update", w.key); err != nil {
			return err
		}
	}
	if err := s.describe(ctx, st, w.wanted); err != nil {
		return err
	}
	if err := w.prepareDocument(ctx); err != nil {
		return err
	}
	return w.prepareTemplate(ctx)
}

// prepareDocument begins a rotation and writes the guest's document.
func (w *work) prepareDocument(ctx context.Context) error {
	if err := w.draw(ctx); err != nil {
		return err
	}
	var err error
	if w.before, err = w.st.standingDocument(); err != nil {
		return err
	}
	if w.after, err = w.before.with(w.st, w.wanted); err != nil {
		return err
	}
	w.count()
	if w.wanted.Monitoring == nil {
		if err := w.store.withdraw(ctx, w.st); err != nil {
			return err
		}
	}
	// What a first boot needs must not reach a disk that is not new.
	left := w.st.next() == "" && w.st.cloudInit != nil && cloudinit.HasBootstrap(w.st.cloudInit.Data[keyUserData])
	if !left && !w.after.differs(w.before) {
		return nil
	}
	return w.store.writeDocument(ctx, w.st, w.after)
}

// prepareTemplate writes what leaves a running machine alone.
func (w *work) prepareTemplate(ctx context.Context) error {
	restart := w.restart()
	wanted := change{}
	if hash := w.after.hash(); vm.TemplateHash(w.st.vm) != hash {
		wanted["metadata"] = change{"annotations": change{vm.AnnotationConfigHash: hash}}
	}
	if !restart && w.up() && w.shapeDiffers() {
		// The machine has the shape already: only the template has another.
		wanted["spec"] = change{"domain": w.domain()}
	}
	if len(wanted) == 0 {
		return nil
	}
	return w.store.patchMachine(ctx, w.st, change{"spec": change{"template": wanted}})
}

// up says whether the machine is meant to run and KubeVirt keeps it so.
func (w *work) up() bool { return vm.KeptRunning(w.st.vm, w.st.vmi) }

func (w *work) shapeDiffers() bool {
	vcpu, memory := vm.Shape(w.st.vm)
	return vcpu != w.wanted.Class.VCPU || memory != w.wanted.Class.MemoryMiB
}

// restart says whether a machine that runs, and shall go on running, has to be
// stopped and started: nothing else reaches a running guest.
func (w *work) restart() bool {
	if !w.up() || !w.wanted.Running {
		return false
	}
	if w.offline {
		return true
	}
	if w.st.vmi == nil {
		return w.shapeDiffers() || vm.TemplateHash(w.st.vm) != w.after.hash()
	}
	return !w.booted(vm.Observed{VMI: w.st.vmi})
}

// booted says whether the machine was started with what is wanted.
func (w *work) booted(o vm.Observed) bool {
	if o.VMI == nil || o.VMI.UID != "" && o.VMI.UID == w.st.ended || o.VMI.Annotations[vm.AnnotationConfigHash] != w.after.hash() {
		return false
	}
	vcpu, memory := vm.MachineShape(o.VMI)
	return vcpu == 0 || vcpu == w.wanted.Class.VCPU && memory == w.wanted.Class.MemoryMiB
}

// carryOut does what needs the machine to stop, to start, or to grow.
func (w *work) carryOut(ctx context.Context) error {
	if err := w.growOnline(ctx); err != nil {
		return err
	}
	if w.up() && w.wanted.Running && !w.restart() {
		if w.st.next() == "" {
			return nil
		}
		return w.awaitBooted(ctx) // an interrupted rotation got as far as the start
	}
	if err := w.store.stop(ctx, w.st); err != nil {
		return err
	}
	if err := w.atRest(ctx); err != nil {
		return err
	}
	if !w.wanted.Running {
		return nil
	}
	if err := w.store.start(ctx, w.st); err != nil {
		return err
	}
	if err := w.awaitBooted(ctx); err != nil {
		return err
	}
	return w.awaitCapacity(ctx)
}

// awaitBooted waits until the instance is available with what is wanted.
func (w *work) awaitBooted(ctx context.Context) error {
	_, err := w.store.await(ctx, w.st, func(o vm.Observed, state vm.State) bool { return state.Available && w.booted(o) })
	return err
}

// atRest writes what can be written only while the machine does not run.
func (w *work) atRest(ctx context.Context) error {
	if w.shapeDiffers() {
		err := w.store.patchMachine(ctx, w.st, change{"spec": change{"template": change{"spec": change{"domain": w.domain()}}}})
		if err != nil {
			return err
		}
	}
	if err := w.growAtRest(ctx); err != nil {
		return err
	}
	// A start brings the newest scripts too.
	if w.wanted.Running && w.after.stale(w.st) {
		return w.store.writeDocument(ctx, w.st, w.after)
	}
	return nil
}

// takeBack undoes the document of an update that the guest itself refused: a
// later start must not repeat what does not work, and nobody is to believe
// that it is what the database runs with.
func (w *work) takeBack(ctx context.Context, cause error) error {
	unavailable, ok := errors.AsType[*UnavailableError](cause)
	if !ok {
		return cause
	}
	unavailable.Update = true
	if unavailable.Reason != string(vm.ReasonGuestFailed) || w.before.hash() == w.after.hash() || !w.before.known() {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.store.pace.settle)
	defer cancel()
	back := w.before
	back.config.DataGiB = w.after.config.DataGiB
	err := w.store.writeDocument(ctx, w.st, back)
	if err == nil {
		err = w.store.patchMachine(ctx, w.st, change{"spec": change{"template": change{
			"metadata": change{"annotations": change{vm.AnnotationConfigHash: back.hash()}},
		}}})
	}
	if err != nil {
		return errors.Join(cause, fmt.Errorf("take back what the guest refused: %w", err))
	}
	unavailable.TakenBack = true
	return cause
}
