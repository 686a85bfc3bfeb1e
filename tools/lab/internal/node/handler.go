package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	kubevirtv1 "kubevirt.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/knobs"
)

// lookAgain is the pause between two looks at a knob that holds something back: as
// an annotation of another object it may go away unheard.
const lookAgain = time.Second

// virtHandler plays virt-handler: it boots what virt-controller hands over, reports
// what the guest does and ends it.
type virtHandler struct {
	*cluster
	machines *machines
	as       record.EventRecorder
}

func (h *virtHandler) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("virt-handler").
		For(&kubevirtv1.VirtualMachineInstance{}).
		WatchesRawSource(source.Channel(h.machines.vmis, &handler.EnqueueRequestForObject{})).
		Watches(onKnobs(h.cluster, &kubevirtv1.VirtualMachineInstanceList{}, func(l client.ObjectList) []client.Object {
			return pointers(l.(*kubevirtv1.VirtualMachineInstanceList).Items)
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 8}).
		Complete(h)
}

// pointers turns a list's items into objects.
func pointers[T any, P interface {
	*T
	client.Object
}](items []T) []client.Object {
	out := make([]client.Object, len(items))
	for i := range items {
		out[i] = P(&items[i])
	}
	return out
}

func (h *virtHandler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	result, err := h.reconcile(ctx, req)
	if apierrors.IsConflict(err) { // virt-controller was faster, as it often is
		return ctrl.Result{RequeueAfter: 20 * time.Millisecond}, nil
	}
	return result, err
}

func (h *virtHandler) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	vmi := new(kubevirtv1.VirtualMachineInstance)
	if err := h.Get(ctx, req.NamespacedName, vmi); err != nil {
		h.machines.forget(req.NamespacedName, "")
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	h.machines.forget(req.NamespacedName, vmi.UID)
	m := h.machines.get(vmi.UID)
	v := h.ofMachine(ctx, vmi.Namespace, vmi.Name)
	if vmi.DeletionTimestamp != nil && m != nil {
		h.shutDown(vmi, m)
	}
	switch {
	case vmi.Status.Phase == kubevirtv1.Scheduled && m == nil && vmi.DeletionTimestamp == nil:
		return h.start(ctx, vmi, v)
	case vmi.Status.Phase == kubevirtv1.Scheduled, vmi.Status.Phase == kubevirtv1.Running:
		return ctrl.Result{}, h.update(ctx, vmi, m, v)
	}
	return ctrl.Result{}, nil
}

// start boots the guest. The next round reports it as running.
func (h *virtHandler) start(ctx context.Context, vmi *kubevirtv1.VirtualMachineInstance, v knobs.Values) (ctrl.Result, error) {
	pod, err := h.launcher(ctx, vmi)
	if err != nil || pod == nil {
		return ctrl.Result{}, err // virt-controller changes the VMI when the pod is gone
	}
	if pod.Status.Phase != corev1.PodRunning { // it ended before the guest began
		return ctrl.Result{}, h.write(ctx, vmi, func() { vmi.Status.Phase = kubevirtv1.Failed })
	}
	if wait := v.Duration(knobs.RunningAfter) - time.Since(startTime(pod)); wait > 0 {
		return ctrl.Result{RequeueAfter: min(wait, lookAgain)}, nil
	}
	if v.On(knobs.CrashLoop) {
		return ctrl.Result{}, h.write(ctx, vmi, func() { vmi.Status.Phase = kubevirtv1.Failed })
	}
	seed, ok := h.machines.seedOf(vmi.UID)
	if !ok {
		return ctrl.Result{RequeueAfter: 100 * time.Millisecond}, nil // kubelet's part is not done
	}
	spec, err := h.spec(ctx, vmi, seed)
	if err != nil {
		return ctrl.Result{}, err
	}
	key := client.ObjectKeyFromObject(vmi)
	m, err := h.machines.boot(ctx, spec, client.ObjectKeyFromObject(pod), func() knobs.Values {
		return h.ofMachine(context.Background(), key.Namespace, key.Name)
	})
	if err != nil {
		h.as.Event(vmi, corev1.EventTypeWarning, "SyncFailed", err.Error())
		return ctrl.Result{}, err
	}
	if err := appendLines(m.ConsoleLog(), v[knobs.Console]); err != nil {
		h.log.Warn("cannot print on the console", "error", err)
	}
	h.log.Info("guest boots", "namespace", vmi.Namespace, "name", vmi.Name)
	h.machines.wakePod(client.ObjectKeyFromObject(pod))
	return ctrl.Result{}, h.update(ctx, vmi, m, v)
}

// appendLines adds text to a console log.
func appendLines(path, text string) error {
	if text == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text + "\n")
	return errors.Join(err, f.Close())
}

// launcher is the pod of the machine on its node, nil if there is none.
func (h *virtHandler) launcher(ctx context.Context, vmi *kubevirtv1.VirtualMachineInstance) (*corev1.Pod, error) {
	l := new(corev1.PodList)
	if err := h.List(ctx, l, client.InNamespace(vmi.Namespace), client.MatchingLabels{kubevirtv1.CreatedByLabel: string(vmi.UID)}); err != nil {
		return nil, err
	}
	for i := range l.Items {
		if p := &l.Items[i]; p.Spec.NodeName == vmi.Status.NodeName && machineName(p) != "" {
			return p, nil
		}
	}
	return nil, nil
}

func startTime(p *corev1.Pod) time.Time {
	if p.Status.StartTime == nil {
		return time.Now()
	}
	return p.Status.StartTime.Time
}

// spec gathers what the guest needs from the machine, its claims and its Secrets.
func (h *virtHandler) spec(ctx context.Context, vmi *kubevirtv1.VirtualMachineInstance, seed *guest.Seed) (guest.Spec, error) {
	volumes := map[string]string{}
	for _, name := range claimNames(vmi) {
		claim := new(corev1.PersistentVolumeClaim)
		if err := h.Get(ctx, types.NamespacedName{Namespace: vmi.Namespace, Name: name}, claim); err != nil {
			return guest.Spec{}, fmt.Errorf("get claim %s: %w", name, err)
		}
		pv := new(corev1.PersistentVolume)
		if err := h.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, pv); err != nil {
			return guest.Spec{}, fmt.Errorf("get the volume of claim %s: %w", name, err)
		}
		if err := h.machines.backend.EnsureVolume(ctx, volumeOf(pv)); err != nil { // known already, unless this agent is new
			return guest.Spec{}, err
		}
		volumes[name] = pv.Name
	}
	return guestSpec(vmi, volumes, seed, h.machines.leases), nil
}

// shutDown powers the guest off within its grace period.
func (h *virtHandler) shutDown(vmi *kubevirtv1.VirtualMachineInstance, m *machine) {
	if m.stop(gracePeriod(vmi), h.log) {
		h.as.Event(vmi, corev1.EventTypeNormal, kubevirtv1.ShuttingDown.String(), "Signaled Graceful Shutdown")
	}
}

func gracePeriod(vmi *kubevirtv1.VirtualMachineInstance) time.Duration {
	seconds := int64(30) // v1.DefaultGracePeriodSeconds
	if vmi.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *vmi.Spec.TerminationGracePeriodSeconds
	}
	return time.Duration(seconds) * time.Second
}

// update writes what is known of the guest. A machine that is Running and has no
// guest was lost with an earlier life of this agent: its domain is gone.
func (h *virtHandler) update(ctx context.Context, vmi *kubevirtv1.VirtualMachineInstance, m *machine, v knobs.Values) error {
	var failed error
	err := h.write(ctx, vmi, func() {
		switch {
		case m != nil && m.exit() == nil:
			vmi.Status.Phase = kubevirtv1.Running
			describeMachine(vmi, m.spec, m.current(), v[knobs.NICOrder] == "reverse")
			failed = h.migrate(ctx, vmi)
		case m != nil:
			vmi.Status.Phase = m.phase()
		case vmi.Status.Phase == kubevirtv1.Running:
			vmi.Status.Phase = kubevirtv1.Failed
		case vmi.DeletionTimestamp != nil:
			vmi.Status.Phase = kubevirtv1.Succeeded
		}
	})
	return errors.Join(failed, err)
}

// write writes what change changes, if anything, and tells of a new phase.
func (h *virtHandler) write(ctx context.Context, vmi *kubevirtv1.VirtualMachineInstance, change func()) error {
	old := vmi.DeepCopy()
	change()
	notePhase(old, vmi)
	if equality.Semantic.DeepEqual(old.Status, vmi.Status) && equality.Semantic.DeepEqual(old.Labels, vmi.Labels) {
		return nil
	}
	if err := h.Update(ctx, vmi); err != nil { // VirtualMachineInstance has no status subresource
		return client.IgnoreNotFound(err)
	}
	if old.Status.Phase != vmi.Status.Phase {
		h.tell(vmi)
	}
	return nil
}

func (h *virtHandler) tell(vmi *kubevirtv1.VirtualMachineInstance) {
	switch vmi.Status.Phase {
	case kubevirtv1.Running:
		h.as.Event(vmi, corev1.EventTypeNormal, kubevirtv1.Started.String(), "VirtualMachineInstance started.")
	case kubevirtv1.Succeeded:
		h.as.Event(vmi, corev1.EventTypeNormal, kubevirtv1.Stopped.String(), "The VirtualMachineInstance was shut down.")
	case kubevirtv1.Failed:
		h.as.Event(vmi, corev1.EventTypeWarning, kubevirtv1.Stopped.String(), "The VirtualMachineInstance crashed.")
	}
}
