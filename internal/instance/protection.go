package instance

import (
	"context"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// SetProtection switches the protection against deletion. It changes one
// annotation of the VM; nothing restarts.
func (s *Store) SetProtection(ctx context.Context, key Key, on bool) (*Instance, error) {
	return s.annotate(ctx, key, change{vm.AnnotationDeletionProtection: strconv.FormatBool(on)})
}

// SetPasswordManaged switches between a password that is in Terraform's state
// as well and one that is in the Secret only. The password stays.
func (s *Store) SetPasswordManaged(ctx context.Context, key Key, managed bool) (*Instance, error) {
	return s.annotate(ctx, key, change{vm.AnnotationPasswordMode: string(passwordMode(managed))})
}

func passwordMode(managed bool) vm.PasswordMode {
	if managed {
		return vm.PasswordManaged
	}
	return vm.PasswordGenerated
}

// annotate writes annotations of ours on the VM, if they are not there yet.
func (s *Store) annotate(ctx context.Context, key Key, wanted change) (*Instance, error) {
	for {
		st, err := s.stand(ctx, key)
		if err != nil {
			return nil, err
		}
		if err := st.guard(key); err != nil {
			return nil, err
		}
		if st.vm == nil {
			return nil, refuse("Nothing was changed. `terraform destroy` removes what is left of the instance.",
				"change instance %s: its virtual machine %s is gone", key, st.names.VM)
		}
		_, err = s.patchVM(ctx, st.vm, wanted)
		if err == nil {
			return s.Get(ctx, key)
		}
		if !apierrors.IsConflict(err) {
			return nil, err
		}
		if pause(ctx, s.pace.first) != nil {
			return nil, err
		}
	}
}

// patchVM writes those annotations that differ from what was read; a conflict
// says that it is another VM by now.
func (s *Store) patchVM(ctx context.Context, read *kubevirtv1.VirtualMachine, wanted change) (*kubevirtv1.VirtualMachine, error) {
	missing := change{}
	for name, value := range wanted {
		if read.Annotations[name] != value {
			missing[name] = value
		}
	}
	if len(missing) == 0 {
		return read, nil
	}
	body, err := change{"metadata": change{"annotations": missing}}.onObject(read)
	if err != nil {
		return nil, wrap(err, "patch vm %s/%s", read.Namespace, read.Name)
	}
	written, err := retry(ctx, s, func(ctx context.Context) (*kubevirtv1.VirtualMachine, error) {
		return s.client.VirtualMachines.VirtualMachines(read.Namespace).Patch(ctx, read.Name, mergePatch, body, metav1.PatchOptions{FieldManager: fieldManager})
	})
	return written, wrap(err, "patch vm %s/%s", read.Namespace, read.Name)
}
