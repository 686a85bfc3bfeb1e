package instance

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// describe writes what only describes the instance: tags, guards, and the
// class's name, on VM and data claim. Nothing restarts.
func (s *Store) describe(ctx context.Context, st *standing, wanted Spec) error {
	if c := st.description(wanted); len(c) > 0 {
		s.report(ctx, "describing virtual machine "+st.names.VM)
		if err := s.patchMachine(ctx, st, change{"metadata": c}); err != nil {
			return err
		}
	}
	if st.data == nil || !vm.Ours(st.data, st.key.Name) || st.data.Annotations[vm.AnnotationInstanceClass] == wanted.ClassName {
		return nil
	}
	return s.patchClaim(ctx, st, change{"metadata": change{"annotations": change{vm.AnnotationInstanceClass: wanted.ClassName}}})
}

// description is what the VM's metadata lacks, or has too much.
func (st *standing) description(wanted Spec) change {
	c := change{}
	annotations := change{}
	for name, value := range map[string]string{
		vm.AnnotationInstanceClass:      wanted.ClassName,
		vm.AnnotationDeletionProtection: strconv.FormatBool(wanted.DeletionProtection),
		vm.AnnotationDeletionPolicy:     vm.Policy(wanted.Retain),
		vm.AnnotationPasswordMode:       string(wanted.Master.Mode),
	} {
		if st.vm.Annotations[name] != value {
			annotations[name] = value
		}
	}
	if len(annotations) > 0 {
		c["annotations"] = annotations
	}
	labels := change{}
	standing := vm.Tags(st.vm)
	for key := range standing {
		if _, stays := wanted.Tags[key]; !stays {
			labels[vm.LabelTagPrefix+key] = nil
		}
	}
	for key, value := range wanted.Tags {
		if has, there := standing[key]; !there || has != value {
			labels[vm.LabelTagPrefix+key] = value
		}
	}
	if len(labels) > 0 {
		c["labels"] = labels
	}
	return maps.Clone(c)
}

// patchClaim changes the data claim that was read, whatever was written to it since.
func (s *Store) patchClaim(ctx context.Context, st *standing, c change) error {
	body, err := c.onObject(st.data)
	if err != nil {
		return wrap(err, "patch claim %s/%s", st.key.Namespace, st.names.DataVolume)
	}
	written, err := retry(ctx, s, func(ctx context.Context) (*corev1.PersistentVolumeClaim, error) {
		return s.client.Core.PersistentVolumeClaims(st.key.Namespace).Patch(ctx, st.data.Name, mergePatch, body, metav1.PatchOptions{FieldManager: fieldManager})
	})
	if err != nil {
		return fmt.Errorf("patch claim %s/%s: %w", st.key.Namespace, st.names.DataVolume, err)
	}
	st.data = written
	return nil
}

// annotate writes those annotations of the VM that differ from what was read.
func (s *Store) annotate(ctx context.Context, st *standing, wanted change) error {
	missing := change{}
	for name, value := range wanted {
		if has, there := st.vm.Annotations[name]; value == nil && there || value != nil && has != value {
			missing[name] = value
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return s.patchMachine(ctx, st, change{"metadata": change{"annotations": missing}})
}
