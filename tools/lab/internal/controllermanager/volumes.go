package controllermanager

import (
	"context"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
	"k8s.io/kubernetes/pkg/controller/volume/pvcprotection"
	"k8s.io/kubernetes/pkg/controller/volume/pvprotection"
)

// startVolumeBinder starts it without plugins: those provision, delete and
// recycle what is not CSI (hostPath, NFS, Portworx), and a lab's volumes are.
func startVolumeBinder(ctx context.Context, e *environment) error {
	core, settings := e.informers.Core().V1(), e.settings.PersistentVolumeBinderController
	c, err := persistentvolume.NewController(ctx, persistentvolume.ControllerParameters{
		KubeClient:                e.clients.ClientOrDie("persistent-volume-binder"),
		SyncPeriod:                settings.PVClaimBinderSyncPeriod.Duration,
		VolumeInformer:            core.PersistentVolumes(),
		ClaimInformer:             core.PersistentVolumeClaims(),
		ClassInformer:             e.informers.Storage().V1().StorageClasses(),
		PodInformer:               core.Pods(),
		NodeInformer:              core.Nodes(),
		EnableDynamicProvisioning: settings.VolumeConfiguration.EnableDynamicProvisioning,
	})
	if err != nil {
		return err
	}
	go c.Run(ctx)
	return nil
}

func startClaimProtection(ctx context.Context, e *environment) error {
	core := e.informers.Core().V1()
	c, err := pvcprotection.NewPVCProtectionController(klog.FromContext(ctx), core.PersistentVolumeClaims(), core.Pods(),
		e.clients.ClientOrDie("pvc-protection-controller"))
	if err != nil {
		return err
	}
	go c.Run(ctx, 1)
	return nil
}

func startVolumeProtection(ctx context.Context, e *environment) error {
	go pvprotection.NewPVProtectionController(klog.FromContext(ctx), e.informers.Core().V1().PersistentVolumes(),
		e.clients.ClientOrDie("pv-protection-controller")).Run(ctx, 1)
	return nil
}
