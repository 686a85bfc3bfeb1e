package node

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/knobs"
)

// provisioners are the CSI drivers that the agent plays.
func provisioners() []string { return []string{"driver.longhorn.io", "lvm.driver.harvesterhci.io"} }

// fromImageAnnotation marks a PersistentVolume that began as a copy of the guest image.
const fromImageAnnotation = "lab.dbaas/from-image"

// Annotations of Kubernetes' volume controllers.
const (
	provisionerAnnotation   = "volume.kubernetes.io/storage-provisioner"
	provisionedByAnnotation = "pv.kubernetes.io/provisioned-by"
	selectedNodeAnnotation  = "volume.kubernetes.io/selected-node"
)

// provisioner plays the CSI external-provisioner: a PersistentVolume for each
// claim. Binding is left to kube-controller-manager.
type provisioner struct {
	*cluster
	backend guest.Backend
	as      record.EventRecorder
}

func (p *provisioner) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("csi-provisioner").
		For(&corev1.PersistentVolumeClaim{}).
		Watches(onKnobs(p.cluster, &corev1.PersistentVolumeClaimList{}, func(l client.ObjectList) []client.Object {
			return pointers(l.(*corev1.PersistentVolumeClaimList).Items)
		})).
		Complete(p)
}

func (p *provisioner) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	c := new(corev1.PersistentVolumeClaim)
	if err := p.Get(ctx, req.NamespacedName, c); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	class, err := p.class(ctx, c)
	if err != nil || class == nil {
		return ctrl.Result{}, err
	}
	if v := p.knobsOf(ctx, c); v.On(knobs.ClaimPending) {
		p.as.Event(c, corev1.EventTypeWarning, "ProvisioningFailed", fmt.Sprintf("failed to provision volume with StorageClass %q: %s", class.Name, v[knobs.ClaimPending]))
		return ctrl.Result{}, nil
	}
	fromImage, err := p.fromImage(ctx, c, class)
	if err != nil {
		return ctrl.Result{}, err
	}
	pv := persistentVolume(c, class)
	if fromImage {
		pv.Annotations[fromImageAnnotation] = "true"
	}
	if err := p.backend.EnsureVolume(ctx, volumeOf(pv)); err != nil {
		p.as.Event(c, corev1.EventTypeWarning, "ProvisioningFailed", err.Error())
		return ctrl.Result{}, err
	}
	if err := p.Create(ctx, pv); err != nil {
		if apierrors.IsAlreadyExists(err) {
			err = nil
		}
		return ctrl.Result{}, err
	}
	p.as.Event(c, corev1.EventTypeNormal, "ProvisioningSucceeded", "Successfully provisioned volume "+pv.Name)
	return ctrl.Result{}, nil
}

// class is the claim's StorageClass if the claim waits for this provisioner.
func (p *provisioner) class(ctx context.Context, c *corev1.PersistentVolumeClaim) (*storagev1.StorageClass, error) {
	if c.DeletionTimestamp != nil || c.Spec.VolumeName != "" || c.Spec.StorageClassName == nil || c.Annotations[provisionerAnnotation] == "" {
		return nil, nil
	}
	class := new(storagev1.StorageClass)
	if err := p.Get(ctx, client.ObjectKey{Name: *c.Spec.StorageClassName}, class); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	late := class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
	if !isOurs(class.Provisioner) || late && c.Annotations[selectedNodeAnnotation] == "" {
		return nil, nil
	}
	return class, nil
}

func isOurs(driver string) bool {
	return slices.Contains(provisioners(), driver)
}

// fromImage says whether the volume starts as a copy of the guest image: Longhorn's
// classes for images have a backing image, CDI copies one through a DataVolume.
func (p *provisioner) fromImage(ctx context.Context, c *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) (bool, error) {
	if class.Parameters["backingImage"] != "" {
		return true, nil
	}
	owner := metav1.GetControllerOf(c)
	if owner == nil || owner.Kind != "DataVolume" {
		return false, nil
	}
	dv := new(cdiv1.DataVolume)
	if err := p.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: owner.Name}, dv); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return dv.Spec.Source == nil || dv.Spec.Source.Blank == nil, nil
}

func persistentVolume(c *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) *corev1.PersistentVolume {
	name := "pvc-" + string(c.UID)
	reclaim := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedByAnnotation: class.Provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: *c.Spec.Resources.Requests.Storage()},
			AccessModes: c.Spec.AccessModes, StorageClassName: class.Name, VolumeMode: c.Spec.VolumeMode,
			PersistentVolumeReclaimPolicy: reclaim,
			ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: c.Namespace, Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: class.Provisioner, VolumeHandle: name, VolumeAttributes: maps.Clone(class.Parameters),
			}},
		},
	}
}

// volumeOf is the volume behind a PersistentVolume.
func volumeOf(pv *corev1.PersistentVolume) guest.Volume {
	return guest.Volume{Name: pv.Name, Bytes: pv.Spec.Capacity.Storage().Value(), FromImage: pv.Annotations[fromImageAnnotation] == "true"}
}

// reclaimer removes the volume of a released PersistentVolume.
type reclaimer struct {
	*cluster
	backend guest.Backend
}

func (r *reclaimer) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("csi-reclaimer").For(&corev1.PersistentVolume{}).Complete(r)
}

func (r *reclaimer) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	pv := new(corev1.PersistentVolume)
	if err := r.Get(ctx, req.NamespacedName, pv); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !isOurs(pv.Annotations[provisionedByAnnotation]) || pv.Status.Phase != corev1.VolumeReleased ||
		pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return ctrl.Result{}, nil
	}
	if err := r.backend.DeleteVolume(ctx, pv.Name); err != nil {
		return ctrl.Result{}, err // a guest still has it: again later
	}
	return ctrl.Result{}, client.IgnoreNotFound(r.Delete(ctx, pv))
}
