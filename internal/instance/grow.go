package instance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// errOffline says that the volume does not grow while the machine uses it.
var errOffline = errors.New("the volume does not grow while it is in use")

// resizeFailed is the reason of the events in which a resizer gives up.
const resizeFailed = "VolumeResizeFailed"

// grows says whether the volume is smaller than wanted.
func (w *work) grows() bool { return w.st.data != nil && vm.GiB(w.st.data) < w.wanted.StorageGiB }

// growOnline grows the volume under the running machine. Where the cluster
// refuses that it remembers that the machine has to stop for it.
func (w *work) growOnline(ctx context.Context) error {
	if !w.grows() || !w.up() || !w.wanted.Running {
		return nil
	}
	if w.st.vmi == nil {
		w.offline = true
		return nil
	}
	earlier := w.store.resizeFailures(ctx, w.st)
	if vm.RequestGiB(w.st.data) >= w.wanted.StorageGiB {
		earlier = nil // a failure may be this request's
	}
	err := w.requestGrowth(ctx)
	switch {
	case err != nil && deniedByWebhook(err):
		w.store.report(ctx, "volume "+w.st.names.DataVolume+" does not grow online")
		w.offline = true
		return nil
	case err != nil:
		return err
	case w.restart():
		return nil // the guest grows its filesystem when it starts
	}
	err = w.awaitOnline(ctx, earlier)
	if errors.Is(err, errOffline) {
		w.offline = true
		return nil
	}
	if err != nil {
		return err
	}
	return w.noteSize(ctx)
}

// requestGrowth asks for the size: of the claim first, since Harvester's
// controller would do it from the template, and then of the template.
func (w *work) requestGrowth(ctx context.Context) error {
	if vm.RequestGiB(w.st.data) < w.wanted.StorageGiB {
		w.store.report(ctx, fmt.Sprintf("growing volume %s to %d GiB", w.st.names.DataVolume, w.wanted.StorageGiB))
		size := fmt.Sprintf("%dGi", w.wanted.StorageGiB)
		err := w.store.patchClaim(ctx, w.st, change{"spec": change{"resources": change{"requests": change{"storage": size}}}})
		if err != nil {
			return err
		}
	}
	templates, err := vm.GrownTemplates(w.st.vm.Annotations[vm.AnnotationClaimTemplates], w.st.names.DataVolume, w.wanted.StorageGiB)
	if err != nil {
		return fmt.Errorf("grow volume of instance %s: %w", w.key, err)
	}
	if templates == w.st.vm.Annotations[vm.AnnotationClaimTemplates] {
		return nil
	}
	return w.store.patchMachine(ctx, w.st, change{"metadata": change{"annotations": change{vm.AnnotationClaimTemplates: templates}}})
}

// deniedByWebhook says whether Harvester's webhook, not the API, refused.
func deniedByWebhook(err error) bool { return strings.Contains(err.Error(), "admission webhook") }

// awaitOnline waits until the claim has the size, and then until the guest says
// that its filesystem has it too.
func (w *work) awaitOnline(ctx context.Context, earlier map[types.UID]int32) error {
	for vm.GiB(w.st.data) < w.wanted.StorageGiB {
		for uid, count := range w.store.resizeFailures(ctx, w.st) {
			if count > earlier[uid] {
				return errOffline
			}
		}
		if err := w.readClaim(ctx); err != nil {
			return err
		}
	}
	end := time.Now().Add(w.store.pace.growth)
	for {
		size, known, unread := w.filesystem(ctx)
		switch {
		case known && size >= w.wanted.StorageGiB<<10-headerMiB:
			return nil
		case unread != "":
			w.store.report(ctx, "the volume has grown; whether the filesystem has was not seen: "+unread)
			w.warnings = append(w.warnings, fmt.Sprintf(
				"the volume has %d GiB now; whether the guest's filesystem has grown too could not be seen (%s): it grows at the latest when the instance is next started", w.wanted.StorageGiB, unread))
			return nil
		case time.Now().After(end):
			return errOffline // the guest grows it for certain when it starts
		}
		if err := pause(ctx, w.store.pace.poll); err != nil {
			return fmt.Errorf("grow instance %s: the guest's filesystem has %d MiB: %w", w.key, size, err)
		}
	}
}

// headerMiB is what an encrypted volume keeps for itself.
const headerMiB = 64

// filesystem is the size that the guest says its data filesystem has, or why
// it cannot be known.
func (w *work) filesystem(ctx context.Context) (mib int64, known bool, unread string) {
	pods, unread := w.store.pods(ctx, w.st.key)
	if unread != "" {
		return 0, false, unread
	}
	console, unread := w.store.console(ctx, w.st.key.Namespace, pods)
	if unread != "" {
		return 0, false, unread
	}
	mib, known = vm.FilesystemMiB(console)
	if !known {
		return 0, false, "its console does not tell"
	}
	return mib, true, ""
}

// readClaim looks at the claim again after a while.
func (w *work) readClaim(ctx context.Context) error {
	if err := pause(ctx, w.store.pace.poll); err != nil {
		return w.notGrown(err)
	}
	claim, err := w.store.rereadClaim(ctx, w.st)
	if err != nil {
		return err
	}
	w.st.data = claim
	return nil
}

// rereadClaim reads the data claim anew; that it is another one is an error.
func (s *Store) rereadClaim(ctx context.Context, st *standing) (*corev1.PersistentVolumeClaim, error) {
	claim, err := find(ctx, s, query{"claim", st.key.Namespace, st.names.DataVolume}, s.client.Core.PersistentVolumeClaims(st.key.Namespace).Get)
	if err != nil {
		return nil, err
	}
	if claim == nil || claim.UID != st.data.UID {
		return nil, st.refuseReplaced()
	}
	return claim, nil
}

func (w *work) notGrown(cause error) error {
	var conditions strings.Builder
	for _, c := range w.st.data.Status.Conditions {
		fmt.Fprintf(&conditions, ", condition %s: %s", c.Type, c.Message)
	}
	return &FieldError{
		Field: FieldStorage,
		Err: fmt.Errorf("grow volume %s/%s: it asks for %d GiB and has %d GiB%s: %w",
			w.st.key.Namespace, w.st.names.DataVolume, vm.RequestGiB(w.st.data), vm.GiB(w.st.data), conditions.String(), cause),
		Advice: fmt.Sprintf("See why the storage does not grow it: kubectl -n %s describe pvc %s. The next apply goes on waiting.", w.st.key.Namespace, w.st.names.DataVolume),
	}
}

// growAtRest grows the volume of a machine that stands still. An instance that
// goes on standing still is done with the request: nothing uses the volume. One
// that is to start gets the time for it, but not all of it: a database that
// serves with the old size is better than none.
func (w *work) growAtRest(ctx context.Context) error {
	if !w.grows() {
		if w.offline && w.st.data != nil {
			// The volume has grown under the running guest, and its filesystem has not:
			// the guest is ready again only once it has.
			w.after.config.DataGiB = w.wanted.StorageGiB
		}
		return nil
	}
	end := time.Now().Add(webhookLag)
	for {
		err := w.requestGrowth(ctx)
		if err == nil {
			break
		}
		// The webhook judges by a cache, which may not know yet that the machine stopped.
		if !deniedByWebhook(err) || time.Now().After(end) || pause(ctx, w.store.pace.poll) != nil {
			return err
		}
	}
	if !w.wanted.Running {
		return nil
	}
	patience := w.store.pace.growth
	if deadline, limited := ctx.Deadline(); limited {
		patience = min(patience, time.Until(deadline)/2)
	}
	end = time.Now().Add(patience)
	for vm.GiB(w.st.data) < w.wanted.StorageGiB && !vm.ResizePending(w.st.data) {
		if time.Now().After(end) {
			return nil // awaitCapacity tells
		}
		if err := w.readClaim(ctx); err != nil {
			return err
		}
	}
	// From now on the guest is ready only with a filesystem of this size.
	w.after.config.DataGiB = w.wanted.StorageGiB
	return nil
}

// noteSize makes the size a condition of every later boot.
func (w *work) noteSize(ctx context.Context) error {
	if w.after.config.DataGiB == w.wanted.StorageGiB {
		return nil
	}
	w.after.config.DataGiB = w.wanted.StorageGiB
	return w.store.writeDocument(ctx, w.st, w.after)
}

// awaitCapacity waits, for a machine that runs again, until the claim has the size.
func (w *work) awaitCapacity(ctx context.Context) error {
	end := time.Now().Add(w.store.pace.growth)
	for w.grows() {
		if time.Now().After(end) {
			return w.notGrown(errors.New("the instance serves with the old size"))
		}
		if err := w.readClaim(ctx); err != nil {
			return err
		}
	}
	return nil
}

// resizeFailures counts the events in which a resizer gave the data claim up.
func (s *Store) resizeFailures(ctx context.Context, st *standing) map[types.UID]int32 {
	failures := map[types.UID]int32{}
	events, _ := s.eventsOf(ctx, st.key.Namespace, st.names.DataVolume) // who may not read them waits longer
	for _, e := range events {
		if e.Reason == resizeFailed && (e.InvolvedObject.UID == "" || e.InvolvedObject.UID == st.data.UID) {
			failures[e.UID] = max(e.Count, 1)
		}
	}
	return failures
}
