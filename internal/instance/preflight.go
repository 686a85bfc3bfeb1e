package instance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// longhornProvisioner makes blocks that several nodes may attach.
const longhornProvisioner = "driver.longhorn.io"

// errTakesOver says that a create finds data that was kept; it is no failure.
var errTakesOver = errors.New("data that was kept is taken over")

var errAbsent = errors.New("it does not exist")

// premises are what an instance is made from and what was found out about it.
type premises struct {
	image Image
	modes []corev1.PersistentVolumeAccessMode
}

// settlePremises waits for the image and checks network and storage class, all
// before anything is written.
func (s *Store) settlePremises(ctx context.Context, spec Spec) (premises, error) {
	ready, err := s.awaitImage(ctx, spec.OSImage)
	if err != nil {
		return premises{}, err
	}
	p := premises{image: ready}
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.checkNetwork(gctx, spec) })
	group.Go(func() (err error) {
		p.modes, err = s.accessModes(gctx, spec)
		return err
	})
	group.Go(func() error { return s.checkMonitoring(gctx, spec) })
	return p, group.Wait()
}

// Check looks, for a planned create, at what the instance needs and at what
// stands under its name. What does not exist yet is a warning, since the same
// apply may make it. The error tells that the cluster could not be asked.
func (s *Store) Check(ctx context.Context, spec Spec) ([]Finding, error) {
	checks := []func(context.Context) error{
		func(ctx context.Context) error {
			found, err := s.findImage(ctx, spec.OSImage)
			if err != nil {
				return err
			}
			_, err = s.readyImage(ctx, found)
			return err
		},
		func(ctx context.Context) error { return s.checkNetwork(ctx, spec) },
		func(ctx context.Context) error { return s.checkMonitoring(ctx, spec) },
		func(ctx context.Context) error {
			_, err := s.storageClass(ctx, spec)
			return err
		},
		func(ctx context.Context) error {
			stands, err := s.stand(ctx, spec.Key())
			if err != nil {
				return err
			}
			if stands.vm != nil && vm.Ours(stands.vm, spec.Name) && !stands.operatorManaged() {
				// A plan cannot tell a create from the second half of a replace, in
				// which the first half's delete removes this VM or refuses to.
				return nil
			}
			if err := stands.admit(spec); err != nil {
				return err
			}
			if stands.takesOver() {
				return errTakesOver
			}
			return nil
		},
	}
	results := make([]error, len(checks))
	group, gctx := errgroup.WithContext(ctx)
	for i, check := range checks {
		group.Go(func() error {
			results[i] = check(gctx)
			return nil
		})
	}
	_ = group.Wait() // no check returns its error through the group
	return findings(results)
}

// CheckGrowth looks, for a planned growth, whether the storage class lets
// volumes grow. Who may not read it finds out when the volume is grown.
func (s *Store) CheckGrowth(ctx context.Context, storageType string) ([]Finding, error) {
	found, err := s.storageClass(ctx, Spec{StorageType: storageType})
	if _, absent := errors.AsType[*FieldError](err); err != nil && !absent {
		return nil, err
	}
	if err == nil && (found == nil || found.AllowVolumeExpansion != nil && *found.AllowVolumeExpansion) {
		return nil, nil
	}
	why := fmt.Sprintf("Storage class %s has no allowVolumeExpansion = true.", storageType)
	if err != nil {
		why = fmt.Sprintf("Storage class %s does not exist any more.", storageType)
	}
	return []Finding{{
		Field: FieldStorage, Summary: "Volume cannot grow",
		Detail: paragraphs(why, "Ask whoever runs the cluster to allow it, or leave allocated_storage as it is."),
	}}, nil
}

// findings sorts what the checks said into findings and failures to ask.
func findings(results []error) ([]Finding, error) {
	var found []Finding
	for _, err := range results {
		field, isField := errors.AsType[*FieldError](err)
		secret, isSecret := errors.AsType[*SecretError](err)
		switch {
		case err == nil, errors.Is(err, errImageImporting):
		case errors.Is(err, errTakesOver):
			found = append(found, Finding{
				Field: FieldName, Warning: true, Summary: "Instance takes over data that was kept",
				Detail: "A data volume and a credentials Secret stand under this name, left by an instance that was deleted with deletion_policy = \"retain\". The new instance takes them over: the same data, password and certificate authority.\n\nTo begin with an empty database instead, choose another name.",
			})
		case isField:
			found = append(found, Finding{
				Field:   field.Field,
				Warning: errors.Is(err, errAbsent) || errors.Is(err, errImageAbsent),
				Summary: summary(field.Field),
				Detail:  paragraphs(field.Error(), field.Advice),
			})
		case isSecret:
			found = append(found, Finding{Field: FieldName, Summary: "Credentials Secret cannot be used", Detail: paragraphs(secret.Error(), secret.Advice())})
		default:
			return found, err
		}
	}
	return found, nil
}

// summary is a finding's title: what the argument is for says what is wrong.
func summary(field Field) string {
	switch field {
	case FieldName:
		return "Name cannot be used"
	case FieldNamespace:
		return "Namespace cannot be used"
	case FieldImage:
		return "Image cannot be used"
	case FieldNetwork:
		return "Network cannot be used"
	case FieldStorageType:
		return "Storage class cannot be used"
	case FieldPassword:
		return "Password cannot be used"
	case FieldMonitoring:
		return "Instance cannot be monitored"
	default:
		return "Instance was begun with another value"
	}
}

func paragraphs(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(t string) bool { return t == "" }), "\n\n")
}

// checkNetwork makes sure that the NetworkAttachmentDefinition exists. Who may
// not read it is trusted to have named the right one.
func (s *Store) checkNetwork(ctx context.Context, spec Spec) error {
	namespace, name, found := strings.Cut(spec.NetworkRef, "/")
	if !found || namespace == "" || name == "" {
		return &FieldError{Field: FieldNetwork, Err: fmt.Errorf("read network reference %q: write namespace/name", spec.NetworkRef)}
	}
	_, err := retry(ctx, s, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return s.client.Dynamic.Resource(networkResource()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	})
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		s.goWithout(ctx, "not checking network "+spec.NetworkRef, err)
		return nil
	case apierrors.IsNotFound(err):
		return &FieldError{
			Field:  FieldNetwork,
			Err:    fmt.Errorf("get network %s: %w", spec.NetworkRef, errAbsent),
			Advice: "Name a NetworkAttachmentDefinition: kubectl get network-attachment-definitions -A",
		}
	default:
		return fmt.Errorf("get network %s: %w", spec.NetworkRef, err)
	}
}

// checkMonitoring makes sure that nobody else uses the names of the objects that
// come when the instance is available, and that they may be read.
func (s *Store) checkMonitoring(ctx context.Context, spec Spec) error {
	if spec.Monitoring == nil {
		return nil
	}
	return s.admitOutlets(ctx, "create", spec.Key())
}

// storageClass returns the class of the data volume, nil when it may not be read.
func (s *Store) storageClass(ctx context.Context, spec Spec) (*storagev1.StorageClass, error) {
	found, err := retry(ctx, s, func(ctx context.Context) (*storagev1.StorageClass, error) {
		return s.client.Storage.StorageClasses().Get(ctx, spec.StorageType, metav1.GetOptions{})
	})
	switch {
	case err == nil:
		return found, nil
	case apierrors.IsForbidden(err):
		s.goWithout(ctx, "not checking storage class "+spec.StorageType, err)
		return nil, nil
	case apierrors.IsNotFound(err):
		return nil, &FieldError{
			Field:  FieldStorageType,
			Err:    fmt.Errorf("get storage class %s: %w", spec.StorageType, errAbsent),
			Advice: "Name a StorageClass of the cluster: kubectl get storageclasses",
		}
	default:
		return nil, fmt.Errorf("get storage class %s: %w", spec.StorageType, err)
	}
}

// accessModes decides how the data volume is attached. Longhorn's blocks, and
// those that CDI knows to be so, may be attached by two nodes at once, which
// live migration needs; of any other class that cannot be assumed.
func (s *Store) accessModes(ctx context.Context, spec Spec) ([]corev1.PersistentVolumeAccessMode, error) {
	many := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	found, err := s.storageClass(ctx, spec)
	if err != nil {
		return nil, err
	}
	if found == nil || found.Provisioner == longhornProvisioner {
		return many, nil
	}
	profile, err := retry(ctx, s, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return s.client.Dynamic.Resource(storageProfileResource()).Get(ctx, spec.StorageType, metav1.GetOptions{})
	})
	if err == nil && sharesBlocks(profile.Object) {
		return many, nil
	}
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("get storage profile %s: %w", spec.StorageType, err)
	}
	s.goWithout(ctx, "not asking whether two nodes may attach volumes of class "+spec.StorageType, err)
	return []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, nil
}

// sharesBlocks reads from a StorageProfile whether its class makes blocks that
// several nodes may attach.
func sharesBlocks(profile map[string]any) bool {
	sets, _, err := unstructured.NestedSlice(profile, "status", "claimPropertySets")
	if err != nil {
		return false
	}
	return slices.ContainsFunc(sets, func(set any) bool {
		properties, ok := set.(map[string]any)
		if !ok || properties["volumeMode"] != string(corev1.PersistentVolumeBlock) {
			return false
		}
		modes, _, err := unstructured.NestedStringSlice(properties, "accessModes")
		return err == nil && slices.Contains(modes, string(corev1.ReadWriteMany))
	})
}
