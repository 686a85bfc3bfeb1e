package instance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	harvesterv1 "github.com/harvester/harvester/pkg/apis/harvesterhci.io/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pickImage chooses by display name.
func pickImage(images []harvesterv1.VirtualMachineImage, namespace, display string) (*harvesterv1.VirtualMachineImage, error) {
	var matches, all []string
	var picked *harvesterv1.VirtualMachineImage
	for i := range images {
		all = append(all, described(&images[i]))
		if images[i].Spec.DisplayName == display {
			matches = append(matches, namespace+"/"+images[i].Name)
			picked = &images[i]
		}
	}
	slices.Sort(all)
	slices.Sort(matches)
	switch len(matches) {
	case 1:
		return picked, nil
	case 0:
		return nil, &FieldError{
			Field:  FieldImage,
			Err:    fmt.Errorf("find image %q in namespace %s: %w", display, namespace, errImageAbsent),
			Advice: holdings(namespace, all),
		}
	default:
		return nil, &FieldError{
			Field:  FieldImage,
			Err:    fmt.Errorf("find image %q: %d images have this display name: %s", display, len(matches), strings.Join(matches, ", ")),
			Advice: "Write the one that is meant as namespace/name.",
		}
	}
}

func holdings(namespace string, images []string) string {
	if len(images) == 0 {
		return fmt.Sprintf("Upload it, or name another namespace: %s holds no image at all.", namespace)
	}
	return fmt.Sprintf("Name one that exists. Namespace %s holds: %s.", namespace, strings.Join(images, ", "))
}

// described is an image as messages name it.
func described(i *harvesterv1.VirtualMachineImage) string {
	return fmt.Sprintf("%s/%s (%s)", i.Namespace, i.Name, i.Spec.DisplayName)
}

// readyImage is assessImage, and tells which images could be used instead of
// one that cannot be.
func (s *Store) readyImage(ctx context.Context, found *harvesterv1.VirtualMachineImage) (Image, error) {
	ready, err := assessImage(found)
	field, isField := errors.AsType[*FieldError](err)
	if !isField {
		return ready, err
	}
	list, listErr := s.client.Images(found.Namespace).List(ctx, metav1.ListOptions{})
	if listErr != nil {
		return Image{}, err // what is wrong with the image matters more
	}
	var usable []string
	for i := range list.Items {
		if _, err := assessImage(&list.Items[i]); err == nil {
			usable = append(usable, described(&list.Items[i]))
		}
	}
	slices.Sort(usable)
	instead := fmt.Sprintf("Namespace %s holds no image that could be used instead.", found.Namespace)
	if len(usable) > 0 {
		instead = fmt.Sprintf("In namespace %s these can be used: %s.", found.Namespace, strings.Join(usable, ", "))
	}
	field.Advice = paragraphs(field.Advice, instead)
	return Image{}, field
}
