package instance

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
	"github.com/wso2/terraform-provider-dbaas/internal/scram"
	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// guestConfig is what every boot of the guest applies.
func guestConfig(spec Spec, held credentials) cloudinit.Config {
	return cloudinit.Config{
		InstanceID:     held.InstanceID,
		Hostname:       vm.NamesOf(spec.Name).VM,
		EngineVersion:  spec.EngineVersion,
		Port:           spec.Port,
		MaxConnections: spec.Class.MaxConnections,
		MasterUsername: held.User,
		DBName:         spec.DBName,
		DataGiB:        spec.StorageGiB,
		CACert:         held.CACert,
		Parameters:     spec.Parameters,
		Extensions:     spec.Extensions,
		AllowedCIDRs:   spec.AllowedCIDRs,
		DNSNames:       spec.DNSNames,
		SSHPublicKeys:  spec.SSHPublicKeys,
		PackageSource:  spec.PackageSource,
		Monitoring:     spec.Monitoring,
	}
}

// guestDocuments renders the first boot's documents from the settled Secret.
func guestDocuments(spec Spec, held credentials) (map[string][]byte, error) {
	verifier, err := scram.Verifier(held.Password)
	if err != nil {
		// The cause could quote the password.
		return nil, fmt.Errorf("derive password verifier of instance %s: the stored password cannot be used", spec.Key())
	}
	user, err := cloudinit.UserData(guestConfig(spec, held), &cloudinit.Bootstrap{CAKey: held.CAKey, Verifier: verifier})
	if err != nil {
		return nil, fmt.Errorf("render user data of instance %s: %w", spec.Key(), err)
	}
	network, err := cloudinit.NetworkData(cloudinit.Network{MAC: held.MAC, Static: spec.Static})
	if err != nil {
		return nil, fmt.Errorf("render network data of instance %s: %w", spec.Key(), err)
	}
	return map[string][]byte{keyUserData: user, keyNetworkData: network}, nil
}

// writeCloudInit writes the first boot's documents, for an instance that has
// no VM yet. Of two creates at work the owner writes last: whoever finds that
// the Secret changed under it asks first whether it is still the owner.
func (s *Store) writeCloudInit(ctx context.Context, a ascent) error {
	spec, st := a.spec, a.stands
	documents, err := guestDocuments(spec, st.held)
	if err != nil {
		return err
	}
	annotations := map[string]string{
		vm.AnnotationInstanceID: st.held.InstanceID,
		vm.AnnotationConfigHash: guestConfig(spec, st.held).Hash(),
	}
	secrets := s.client.Core.Secrets(spec.Namespace)
	s.report(ctx, "writing secret "+st.names.CloudInit)
	for {
		if st.cloudInit == nil {
			st.cloudInit, err = retry(ctx, s, func(ctx context.Context) (*corev1.Secret, error) {
				return secrets.Create(ctx, &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{
						Namespace: spec.Namespace, Name: st.names.CloudInit,
						Labels: vm.Labels(spec.Name), Annotations: annotations,
					},
					Type: corev1.SecretTypeOpaque,
					Data: documents,
				}, metav1.CreateOptions{FieldManager: fieldManager})
			})
			err = inNamespace(spec, wrap(err, "create secret %s/%s", spec.Namespace, st.names.CloudInit))
		} else {
			st.cloudInit, err = s.patchSecret(ctx, st.cloudInit, change{
				"metadata": change{"annotations": annotations},
				"data":     documents,
			})
		}
		if !overtaken(err) {
			return err
		}
		if pauseErr := pause(ctx, s.pace.first); pauseErr != nil {
			return err
		}
		if st.cloudInit, err = s.rereadCloudInit(ctx, st); err != nil {
			return err
		}
		if err := s.stillOwner(ctx, a.key); err != nil {
			return err
		}
	}
}

func (s *Store) rereadCloudInit(ctx context.Context, st *standing) (*corev1.Secret, error) {
	found, err := find(ctx, s, query{"secret", st.key.Namespace, st.names.CloudInit}, s.client.Core.Secrets(st.key.Namespace).Get)
	if err != nil {
		return nil, err
	}
	if found != nil && !vm.Ours(found, st.key.Name) {
		return nil, st.stranger("create", "secret", st.names.CloudInit)
	}
	return found, nil
}
