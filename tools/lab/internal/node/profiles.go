package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// profiles plays CDI's StorageProfile controller.
type profiles struct{ *cluster }

func (p *profiles) setup(mgr ctrl.Manager) error {
	if err := mgr.Add(manager.RunnableFunc(p.configure)); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("cdi-storageprofiles").For(&storagev1.StorageClass{}).Owns(&cdiv1.StorageProfile{}).Complete(p)
}

// configure writes CDI's configuration, without which virt-controller starts no
// machine that has a claim.
func (p *profiles) configure(ctx context.Context) error {
	config := &cdiv1.CDIConfig{ObjectMeta: metav1.ObjectMeta{Name: "config"}, Status: cdiv1.CDIConfigStatus{
		FilesystemOverhead: &cdiv1.FilesystemOverhead{Global: "0.06"},
	}}
	if err := p.Create(ctx, config); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("write CDI's configuration: %w", err)
	}
	return nil
}

func (p *profiles) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	class := new(storagev1.StorageClass)
	if err := p.Get(ctx, req.NamespacedName, class); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	profile := &cdiv1.StorageProfile{ObjectMeta: metav1.ObjectMeta{
		Name:            class.Name,
		Labels:          map[string]string{"app": "containerized-data-importer", "app.kubernetes.io/managed-by": "cdi-controller"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(class, storagev1.SchemeGroupVersion.WithKind("StorageClass"))},
	}}
	if err := p.Create(ctx, profile); err != nil {
		if apierrors.IsAlreadyExists(err) {
			err = nil
		}
		return ctrl.Result{}, err
	}
	old := profile.DeepCopy()
	profile.Status = cdiv1.StorageProfileStatus{
		StorageClass: &class.Name, Provisioner: &class.Provisioner, ClaimPropertySets: claimProperties(class), CloneStrategy: new(cdiv1.CloneStrategyHostAssisted),
	}
	return ctrl.Result{}, client.IgnoreNotFound(p.Status().Patch(ctx, profile, client.MergeFrom(old)))
}

// claimProperties are CDI's storage capabilities of the classes that the lab has:
// Longhorn volumes are shared only if they are migratable.
func claimProperties(class *storagev1.StorageClass) []cdiv1.ClaimPropertySet {
	set := func(mode corev1.PersistentVolumeAccessMode) cdiv1.ClaimPropertySet {
		return cdiv1.ClaimPropertySet{AccessModes: []corev1.PersistentVolumeAccessMode{mode}, VolumeMode: new(corev1.PersistentVolumeBlock)}
	}
	switch {
	case class.Provisioner == "driver.longhorn.io" && class.Parameters["migratable"] == "true":
		return []cdiv1.ClaimPropertySet{set(corev1.ReadWriteMany), set(corev1.ReadWriteOnce)}
	case isOurs(class.Provisioner):
		return []cdiv1.ClaimPropertySet{set(corev1.ReadWriteOnce)}
	}
	return nil
}
