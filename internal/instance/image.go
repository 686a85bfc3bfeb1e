package instance

import (
	"context"
	"errors"
	"fmt"
	"strings"

	harvesterv1 "github.com/harvester/harvester/pkg/apis/harvesterhci.io/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// imageNamespace is where Harvester's own images live; an os_image without a
// namespace is looked up there.
const imageNamespace = "default"

// minimumOSDiskGiB leaves room for packages, logs and the journal.
const minimumOSDiskGiB = 20

var (
	errImageAbsent    = errors.New("no such image")
	errImageImporting = errors.New("image is still importing")
)

// Image is a VirtualMachineImage that is ready to be cloned.
type Image struct {
	ID           string // ns/object name
	DisplayName  string
	StorageClass string
	VirtualSize  int64 // in bytes
	DiskGiB      int64 // size of an OS disk made from it
	CDI          bool
}

// Image returns the one image that the reference names, as os_image does. One
// that is still importing is an error.
func (s *Store) Image(ctx context.Context, ref string) (*Image, error) {
	found, err := s.findImage(ctx, ref)
	if err != nil {
		return nil, err
	}
	ready, err := s.readyImage(ctx, found)
	if errors.Is(err, errImageImporting) {
		err = &FieldError{Field: FieldImage, Err: err, Advice: "Wait for the import, and plan again."}
	}
	if err != nil {
		return nil, err
	}
	return &ready, nil
}

// imageRef is an os_image: a namespace, and what names the image in it, its
// object name or its display name.
type imageRef struct{ namespace, name string }

func parseImageRef(text string) (imageRef, error) {
	if text == "" {
		return imageRef{}, errors.New("read image reference: it is empty; write namespace/name, name or a display name")
	}
	namespace, name, found := strings.Cut(text, "/")
	if !found {
		return imageRef{imageNamespace, text}, nil
	}
	if namespace == "" || name == "" {
		return imageRef{}, fmt.Errorf("read image reference %q: want namespace/name, name or a display name", text)
	}
	return imageRef{namespace, name}, nil
}

// findImage returns the one image that the reference names. errImageAbsent is
// in the chain when there is none.
func (s *Store) findImage(ctx context.Context, text string) (*harvesterv1.VirtualMachineImage, error) {
	ref, err := parseImageRef(text)
	if err != nil {
		return nil, &FieldError{Field: FieldImage, Err: err}
	}
	namespace, name := ref.namespace, ref.name
	images := s.client.Images(namespace)
	// A display name may hold characters that no object name and no URL path has.
	if len(content.IsPathSegmentName(name)) == 0 {
		found, err := retry(ctx, s, func(ctx context.Context) (*harvesterv1.VirtualMachineImage, error) {
			return images.Get(ctx, name, metav1.GetOptions{})
		})
		if err == nil {
			return found, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, imageAccess(fmt.Errorf("get image %s/%s: %w", namespace, name, err))
		}
	}
	list, err := retry(ctx, s, func(ctx context.Context) (*harvesterv1.VirtualMachineImageList, error) {
		return images.List(ctx, metav1.ListOptions{})
	})
	if err != nil {
		return nil, imageAccess(fmt.Errorf("list images in namespace %s: %w", namespace, err))
	}
	return pickImage(list.Items, namespace, name)
}

// imageAccess binds a missing permission to the argument; any other failed
// request is about the cluster, not about the image.
func imageAccess(err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return &FieldError{
		Field: FieldImage,
		Err:   err,
		Advice: "The provider needs the verbs get and list on virtualmachineimages (harvesterhci.io) in the image's namespace; " +
			"examples/rbac/images-and-networks-role.yaml holds the Role.",
	}
}

// assessImage says whether an image can be used. errImageImporting is in the
// chain when it may be later.
func assessImage(i *harvesterv1.VirtualMachineImage) (Image, error) {
	id := i.Namespace + "/" + i.Name
	if i.DeletionTimestamp != nil {
		return Image{}, &FieldError{Field: FieldImage, Err: fmt.Errorf("use image %s: it is being deleted", id), Advice: "Name another one."}
	}
	if c := imageCondition(i, string(harvesterv1.ImageRetryLimitExceeded)); c.Status == corev1.ConditionTrue {
		return Image{}, &FieldError{
			Field:  FieldImage,
			Err:    fmt.Errorf("use image %s: its import failed: %s", id, imageTrouble(i, c)),
			Advice: "Correct the image in Harvester, or name another one.",
		}
	}
	imported := imageCondition(i, string(harvesterv1.ImageImported))
	if imported.Status != corev1.ConditionTrue {
		return Image{}, fmt.Errorf("use image %s: %w (%d %%)", id, errImageImporting, i.Status.Progress)
	}
	// The class's name follows no rule one could rely on: Harvester says it.
	if i.Status.StorageClassName == "" {
		return Image{}, fmt.Errorf("use image %s: %w (it has no storage class yet)", id, errImageImporting)
	}
	return Image{
		ID:           id,
		DisplayName:  i.Spec.DisplayName,
		VirtualSize:  i.Status.VirtualSize,
		StorageClass: i.Status.StorageClassName,
		DiskGiB:      max(minimumOSDiskGiB, gibibytes(i.Status.VirtualSize)),
		CDI:          i.Spec.Backend == harvesterv1.VMIBackendCDI,
	}, nil
}

// imageTrouble digs for the words that tell why an import failed: the
// condition that says "limit exceeded" often has none itself.
func imageTrouble(i *harvesterv1.VirtualMachineImage, c harvesterv1.Condition) string {
	if c.Message != "" {
		return c.Message
	}
	if m := imageCondition(i, string(harvesterv1.ImageImported)).Message; m != "" {
		return m
	}
	if m := imageCondition(i, string(harvesterv1.ImageInitialized)).Message; m != "" {
		return m
	}
	return "Harvester gave up trying and says nothing more"
}

func imageCondition(i *harvesterv1.VirtualMachineImage, kind string) harvesterv1.Condition {
	for _, c := range i.Status.Conditions {
		if string(c.Type) == kind {
			return c
		}
	}
	return harvesterv1.Condition{}
}

// awaitImage finds the image and waits, within the context's deadline, until
// it has been imported.
func (s *Store) awaitImage(ctx context.Context, ref string) (Image, error) {
	last := ""
	for {
		found, err := s.findImage(ctx, ref)
		if err != nil {
			return Image{}, err
		}
		ready, err := s.readyImage(ctx, found)
		if !errors.Is(err, errImageImporting) {
			return ready, err
		}
		if err.Error() != last {
			last = err.Error()
			s.report(ctx, last)
		}
		if pauseErr := pause(ctx, s.pace.poll); pauseErr != nil {
			return Image{}, &FieldError{
				Field:  FieldImage,
				Err:    fmt.Errorf("wait for image: %s: %w", last, pauseErr),
				Advice: "Wait for the import, or allow more time with timeouts.create.",
			}
		}
	}
}

// gibibytes rounds a size up to whole GiB.
func gibibytes(size int64) int64 {
	const gib = 1 << 30
	return (size + gib - 1) / gib
}
