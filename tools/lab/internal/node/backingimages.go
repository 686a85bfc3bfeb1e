package node

import (
	"context"
	"strings"
	"time"

	harvesterv1 "github.com/harvester/harvester/pkg/apis/harvesterhci.io/v1beta1"
	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/knobs"
)

// imageAnnotation names the VirtualMachineImage of a BackingImage or a claim.
const imageAnnotation = "harvesterhci.io/imageId"

// backingImages plays Longhorn's download of images.
type backingImages struct {
	*cluster
	bytes int64
}

func (b *backingImages) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("backing-images").
		For(&longhornv1.BackingImage{}).
		Watches(onKnobs(b.cluster, &longhornv1.BackingImageList{}, func(l client.ObjectList) []client.Object {
			return pointers(l.(*longhornv1.BackingImageList).Items)
		})).
		Complete(b)
}

func (b *backingImages) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	i := new(longhornv1.BackingImage)
	if err := b.Get(ctx, req.NamespacedName, i); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	image, err := b.image(ctx, i.Annotations[imageAnnotation])
	if err != nil || image == nil || i.DeletionTimestamp != nil {
		return ctrl.Result{}, err
	}
	disk := &longhornv1.BackingImageDiskFileStatus{State: longhornv1.BackingImageStateReady, Progress: 100}
	v := b.knobsOf(ctx, image)
	switch percent, importing := v.Percent(knobs.ImageProgress); {
	case v.On(knobs.ImageFails):
		disk = &longhornv1.BackingImageDiskFileStatus{State: longhornv1.BackingImageStateFailed, Message: v[knobs.ImageFails]}
	case importing:
		disk = &longhornv1.BackingImageDiskFileStatus{State: longhornv1.BackingImageStateInProgress, Progress: percent}
	}
	ready := disk.State == longhornv1.BackingImageStateReady
	if heard(image, disk) {
		if ready {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{RequeueAfter: lookAgain}, nil
	}
	old := i.DeepCopy()
	disk.DataEngine, disk.LastStateTransitionTime = longhornv1.DataEngineTypeV1, time.Now().UTC().Format(time.RFC3339Nano)
	i.Status.OwnerID, i.Status.UUID, i.Status.Checksum = node1, string(i.UID), strings.Repeat("0", 128)
	if ready {
		i.Status.Size, i.Status.VirtualSize, i.Status.RealSize = imageFileBytes, b.bytes, imageFileBytes
	}
	i.Status.DiskFileStatusMap = map[string]*longhornv1.BackingImageDiskFileStatus{"disk-1": disk}
	return ctrl.Result{RequeueAfter: lookAgain}, client.IgnoreNotFound(b.Status().Patch(ctx, i, client.MergeFrom(old)))
}

// heard says whether Harvester has taken over the news of a download. It misses
// what comes before its image is Initialized; Longhorn's download is slower than
// that and its status keeps changing, so here it is said again until it is heard.
func heard(image *harvesterv1.VirtualMachineImage, disk *longhornv1.BackingImageDiskFileStatus) bool {
	switch disk.State {
	case longhornv1.BackingImageStateReady:
		return harvesterv1.ImageImported.IsTrue(image)
	case longhornv1.BackingImageStateFailed:
		return harvesterv1.ImageImported.IsFalse(image)
	default:
		return image.Status.Progress == disk.Progress
	}
}

// image is a VirtualMachineImage, given as namespace/name; nil if there is none.
func (c *cluster) image(ctx context.Context, id string) (*harvesterv1.VirtualMachineImage, error) {
	namespace, name, _ := strings.Cut(id, "/")
	i := new(harvesterv1.VirtualMachineImage)
	if err := c.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, i); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return i, nil
}
