package node

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/knobs"
)

// resizer plays the CSI external-resizer and the kubelet's part of growing a
// volume: the device grows at once, the claim's capacity when a pod has it.
type resizer struct {
	*cluster
	backend guest.Backend
	as      record.EventRecorder
}

func (r *resizer) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("csi-resizer").
		For(&corev1.PersistentVolumeClaim{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			var out []reconcile.Request
			for _, name := range podClaims(o.(*corev1.Pod)) {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}})
			}
			return out
		})).
		Watches(onKnobs(r.cluster, &corev1.PersistentVolumeClaimList{}, func(l client.ObjectList) []client.Object {
			return pointers(l.(*corev1.PersistentVolumeClaimList).Items)
		})).
		Complete(r)
}

func podClaims(p *corev1.Pod) []string {
	var out []string
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			out = append(out, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return out
}

func (r *resizer) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	c := new(corev1.PersistentVolumeClaim)
	if err := r.Get(ctx, req.NamespacedName, c); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	want, have := c.Spec.Resources.Requests[corev1.ResourceStorage], c.Status.Capacity[corev1.ResourceStorage]
	if c.DeletionTimestamp != nil || c.Status.Phase != corev1.ClaimBound || have.Cmp(want) >= 0 {
		return ctrl.Result{}, nil
	}
	pv := new(corev1.PersistentVolume)
	if err := r.Get(ctx, client.ObjectKey{Name: c.Spec.VolumeName}, pv); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !isOurs(pv.Annotations[provisionedByAnnotation]) {
		return ctrl.Result{}, nil
	}
	inUse, err := r.inUse(ctx, c)
	if err != nil {
		return ctrl.Result{}, err
	}
	v := r.knobsOf(ctx, c)
	switch {
	case v.On(knobs.ClaimFrozen):
		return ctrl.Result{}, r.mark(ctx, c, corev1.PersistentVolumeClaimResizing, "")
	case v.On(knobs.GrowOffline) && inUse && !hasGrown(pv, want):
		r.as.Eventf(c, corev1.EventTypeWarning, "VolumeResizeFailed", "resize volume %q by resizer %q failed: rpc error: code = FailedPrecondition desc = volume is attached, offline expansion is required", pv.Name, pv.Annotations[provisionedByAnnotation])
		return ctrl.Result{}, r.mark(ctx, c, corev1.PersistentVolumeClaimResizing, "")
	}
	if err := r.growDevice(ctx, c, pv); err != nil {
		return ctrl.Result{}, err
	}
	if !inUse {
		return ctrl.Result{}, r.mark(ctx, c, corev1.PersistentVolumeClaimFileSystemResizePending, "Waiting for user to (re-)start a pod to finish file system resize of volume on node.")
	}
	old := c.DeepCopy()
	c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: want}
	c.Status.Conditions = nil
	if err := r.Status().Patch(ctx, c, client.MergeFrom(old)); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.as.Event(c, corev1.EventTypeNormal, "FileSystemResizeSuccessful", "MountVolume.NodeExpandVolume succeeded for volume \""+pv.Name+"\"")
	return ctrl.Result{}, nil
}

// hasGrown says whether the device is as large as wanted.
func hasGrown(pv *corev1.PersistentVolume, want resource.Quantity) bool {
	have := pv.Spec.Capacity[corev1.ResourceStorage]
	return have.Cmp(want) >= 0
}

// growDevice grows the volume, which a running guest sees at once.
func (r *resizer) growDevice(ctx context.Context, c *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	want := c.Spec.Resources.Requests[corev1.ResourceStorage]
	if hasGrown(pv, want) {
		return nil
	}
	if err := r.mark(ctx, c, corev1.PersistentVolumeClaimResizing, ""); err != nil {
		return err
	}
	r.as.Eventf(c, corev1.EventTypeNormal, "Resizing", "External resizer is resizing volume %s", pv.Name)
	old := pv.DeepCopy()
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: want}
	if err := r.backend.EnsureVolume(ctx, volumeOf(pv)); err != nil {
		r.as.Eventf(c, corev1.EventTypeWarning, "VolumeResizeFailed", "resize volume %q failed: %v", pv.Name, err)
		return err
	}
	return r.Patch(ctx, pv, client.MergeFrom(old))
}

// mark makes a condition the claim's only one.
func (r *resizer) mark(ctx context.Context, c *corev1.PersistentVolumeClaim, t corev1.PersistentVolumeClaimConditionType, message string) error {
	if len(c.Status.Conditions) == 1 && c.Status.Conditions[0].Type == t {
		return nil
	}
	old := c.DeepCopy()
	c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: t, Status: corev1.ConditionTrue, Message: message, LastTransitionTime: metav1.Now()}}
	return client.IgnoreNotFound(r.Status().Patch(ctx, c, client.MergeFrom(old)))
}

// inUse says whether a running pod has the claim.
func (r *resizer) inUse(ctx context.Context, c *corev1.PersistentVolumeClaim) (bool, error) {
	l := new(corev1.PodList)
	if err := r.List(ctx, l, client.InNamespace(c.Namespace)); err != nil {
		return false, err
	}
	return slices.ContainsFunc(l.Items, func(p corev1.Pod) bool {
		return p.Status.Phase == corev1.PodRunning && slices.Contains(podClaims(&p), c.Name)
	}), nil
}
