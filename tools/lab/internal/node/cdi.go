package node

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/knobs"
)

// importer plays CDI's DataVolume controller: a claim of the same name, which
// belongs to the DataVolume, and success as soon as it is bound.
type importer struct{ *cluster }

func (i *importer) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("cdi-datavolumes").
		For(&cdiv1.DataVolume{}).Owns(&corev1.PersistentVolumeClaim{}).
		Watches(onKnobs(i.cluster, &cdiv1.DataVolumeList{}, func(l client.ObjectList) []client.Object {
			return pointers(l.(*cdiv1.DataVolumeList).Items)
		})).
		Complete(i)
}

func (i *importer) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	dv := new(cdiv1.DataVolume)
	if err := i.Get(ctx, req.NamespacedName, dv); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if dv.DeletionTimestamp != nil || dv.Status.Phase == cdiv1.Succeeded {
		return ctrl.Result{}, nil
	}
	claim := new(corev1.PersistentVolumeClaim)
	err := i.Get(ctx, req.NamespacedName, claim)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, i.createClaim(ctx, dv)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if !metav1.IsControlledBy(claim, dv) {
		return ctrl.Result{}, i.report(ctx, dv, cdiv1.Pending, "N/A", "ErrResourceExists", fmt.Sprintf("Resource %q already exists and is not managed by DataVolume", claim.Name))
	}
	if claim.Status.Phase != corev1.ClaimBound {
		return ctrl.Result{}, i.report(ctx, dv, cdiv1.PVCBound, "N/A", "Pending", "PVC "+claim.Name+" Pending")
	}
	v := i.knobsOf(ctx, dv)
	if len(dv.OwnerReferences) == 1 && dv.OwnerReferences[0].Kind == "VirtualMachineImage" {
		image, err := i.image(ctx, dv.Namespace+"/"+dv.OwnerReferences[0].Name)
		if err != nil || image == nil {
			return ctrl.Result{}, err
		}
		v = i.knobsOf(ctx, image)
	}
	switch percent, importing := v.Percent(knobs.ImageProgress); {
	case v.On(knobs.ImageFails):
		return ctrl.Result{}, i.report(ctx, dv, cdiv1.Failed, "N/A", "Error", v[knobs.ImageFails])
	case importing:
		return ctrl.Result{}, i.report(ctx, dv, cdiv1.ImportInProgress, cdiv1.DataVolumeProgress(fmt.Sprintf("%d.00%%", percent)), "TransferRunning", "")
	}
	return ctrl.Result{}, i.report(ctx, dv, cdiv1.Succeeded, "100.0%", "", "")
}

// createClaim fills in what the StorageProfile of the class says, as CDI does for
// spec.storage.
func (i *importer) createClaim(ctx context.Context, dv *cdiv1.DataVolume) error {
	spec := corev1.PersistentVolumeClaimSpec{}
	switch {
	case dv.Spec.PVC != nil:
		spec = *dv.Spec.PVC.DeepCopy()
	case dv.Spec.Storage != nil:
		s := dv.Spec.Storage
		spec = corev1.PersistentVolumeClaimSpec{AccessModes: s.AccessModes, VolumeMode: s.VolumeMode, StorageClassName: s.StorageClassName, Resources: s.Resources}
		if len(spec.AccessModes) == 0 && spec.StorageClassName != nil {
			class := new(storagev1.StorageClass)
			if err := i.Get(ctx, client.ObjectKey{Name: *spec.StorageClassName}, class); err != nil {
				return err
			}
			sets := claimProperties(class)
			if len(sets) == 0 {
				return i.report(ctx, dv, cdiv1.Pending, "N/A", "ErrClaimNotValid", "no accessMode specified in StorageProfile "+class.Name)
			}
			spec.AccessModes, spec.VolumeMode = sets[0].AccessModes, sets[0].VolumeMode
		}
	}
	claim := &corev1.PersistentVolumeClaim{Spec: spec, ObjectMeta: metav1.ObjectMeta{
		Namespace: dv.Namespace, Name: dv.Name, Labels: maps.Clone(dv.Labels), Annotations: maps.Clone(dv.Annotations),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(dv, cdiv1.SchemeGroupVersion.WithKind("DataVolume"))},
	}}
	metav1.SetMetaDataLabel(&claim.ObjectMeta, "app", "containerized-data-importer")
	metav1.SetMetaDataLabel(&claim.ObjectMeta, "app.kubernetes.io/managed-by", "cdi-controller")
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, "cdi.kubevirt.io/createdForDataVolume", string(dv.UID))
	if dv.Annotations["cdi.kubevirt.io/storage.bind.immediate.requested"] == "true" {
		// CDI's own pod is the first consumer that such a class waits for.
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, selectedNodeAnnotation, node1)
	}
	if err := i.Create(ctx, claim); err != nil && !apierrors.IsAlreadyExists(err) {
		return i.report(ctx, dv, cdiv1.Pending, "N/A", "ErrCreateClaim", err.Error())
	}
	return nil
}

func (i *importer) report(ctx context.Context, dv *cdiv1.DataVolume, phase cdiv1.DataVolumePhase, progress cdiv1.DataVolumeProgress, reason, message string) error {
	if dv.Status.Phase == phase && dv.Status.Progress == progress {
		return nil
	}
	now := metav1.Now()
	condition := func(t cdiv1.DataVolumeConditionType, is bool) cdiv1.DataVolumeCondition {
		c := cdiv1.DataVolumeCondition{Type: t, Status: corev1.ConditionFalse, LastTransitionTime: now, LastHeartbeatTime: now, Reason: reason, Message: message}
		if is {
			c.Status = corev1.ConditionTrue
		}
		return c
	}
	old := dv.DeepCopy()
	dv.Status.ClaimName, dv.Status.Phase, dv.Status.Progress = dv.Name, phase, progress
	dv.Status.Conditions = []cdiv1.DataVolumeCondition{
		condition(cdiv1.DataVolumeBound, phase == cdiv1.Succeeded || phase == cdiv1.ImportInProgress || phase == cdiv1.Failed),
		condition(cdiv1.DataVolumeReady, phase == cdiv1.Succeeded),
		condition(cdiv1.DataVolumeRunning, phase == cdiv1.ImportInProgress),
	}
	return client.IgnoreNotFound(i.Status().Patch(ctx, dv, client.MergeFrom(old)))
}
