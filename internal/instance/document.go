package instance

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
	"github.com/wso2/terraform-provider-dbaas/internal/scram"
	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// guestDocument is what each boot of the guest applies.
type guestDocument struct {
	config cloudinit.Config
	// static is for a Secret that has to be made anew; nil is DHCP.
	static *cloudinit.Static
}

func (d guestDocument) hash() string { return d.config.Hash() }

// known says whether the document was read, not made anew.
func (d guestDocument) known() bool { return d.config.InstanceID != "" }

// standingDocument reads the document that stands; what does not exist is not
// known, and damage is an error.
func (st *standing) standingDocument() (guestDocument, error) {
	if st.cloudInit == nil {
		return guestDocument{}, nil
	}
	if !vm.Ours(st.cloudInit, st.key.Name) {
		return guestDocument{}, st.stranger("update", "secret", st.names.CloudInit)
	}
	config, err := cloudinit.ParseUserData(st.cloudInit.Data[keyUserData])
	if err != nil {
		// The parser's error may quote what it read.
		return guestDocument{}, &SecretError{Namespace: st.key.Namespace, Name: st.names.CloudInit, Key: keyUserData, Problem: "is not what this provider wrote"}
	}
	return guestDocument{config: config}, nil
}

// with is the document for what is wanted. What the instance was created with
// comes from the document that stands, else from the credentials Secret. The
// size of the disk is changed only once the disk has it.
func (d guestDocument) with(st *standing, wanted Spec) (guestDocument, error) {
	next := d.config
	if !d.known() {
		held := st.held
		if held.InstanceID == "" {
			if st.credentials == nil {
				return guestDocument{}, &SecretError{
					Namespace: st.key.Namespace, Name: st.names.Credentials, Key: keyCACert,
					Problem: fmt.Sprintf("is missing, and so is secret %s: the guest's document cannot be made without both", st.names.CloudInit),
				}
			}
			var err error
			if held, err = parseCredentials(st.credentials); err != nil {
				return guestDocument{}, err
			}
		}
		next = guestConfig(wanted, held)
		if st.data != nil {
			next.DataGiB = vm.GiB(st.data)
		}
	}
	next.MaxConnections = wanted.Class.MaxConnections
	next.Parameters = maps.Clone(wanted.Parameters)
	next.Extensions, next.DNSNames, next.SSHPublicKeys = slices.Clone(wanted.Extensions), slices.Clone(wanted.DNSNames), slices.Clone(wanted.SSHPublicKeys)
	next.AllowedCIDRs = wanted.AllowedCIDRs
	next.PackageSource, next.Monitoring = wanted.PackageSource, wanted.Monitoring
	return guestDocument{config: next, static: wanted.Static}, nil
}

// differs says whether a boot with d would apply something else, now or later.
func (d guestDocument) differs(other guestDocument) bool {
	return d.hash() != other.hash() || d.config.DataGiB != other.config.DataGiB ||
		!reflect.DeepEqual(d.config.PackageSource, other.config.PackageSource) ||
		!reflect.DeepEqual(d.config.Monitoring, other.config.Monitoring)
}

func (d guestDocument) render(st *standing) ([]byte, error) {
	var secret *cloudinit.Bootstrap
	if next := st.next(); next != "" {
		verifier, err := scram.Verifier(next)
		if err != nil {
			// The cause could quote the password.
			return nil, fmt.Errorf("derive password verifier of instance %s: the stored password cannot be used", st.key)
		}
		secret = &cloudinit.Bootstrap{Verifier: verifier}
	}
	text, err := cloudinit.UserData(d.config, secret)
	if err != nil {
		return nil, fmt.Errorf("render user data of instance %s: %w", st.key, err)
	}
	return text, nil
}

// stale says whether what stands is another text than the document's, be it
// only for scripts of an earlier provider.
func (d guestDocument) stale(st *standing) bool {
	if st.next() != "" && st.cloudInit != nil && cloudinit.HasBootstrap(st.cloudInit.Data[keyUserData]) {
		// Every verifier has another salt. Only the disk's size may be new.
		standing, err := st.standingDocument()
		return err == nil && d.differs(standing)
	}
	text, err := d.render(st)
	return err == nil && st.cloudInit != nil && !bytes.Equal(text, st.cloudInit.Data[keyUserData])
}

// writeDocument writes the document into the cloud-init Secret, which it
// creates if it is gone. The running guest does not see it.
func (s *Store) writeDocument(ctx context.Context, st *standing, d guestDocument) error {
	text, err := d.render(st)
	if err != nil {
		return err
	}
	annotations := map[string]string{vm.AnnotationInstanceID: d.config.InstanceID, vm.AnnotationConfigHash: d.hash()}
	s.report(ctx, "writing secret "+st.names.CloudInit)
	if st.cloudInit != nil {
		st.cloudInit, err = s.patchSecret(ctx, st.cloudInit, change{
			"metadata": change{"annotations": annotations},
			"data":     map[string][]byte{keyUserData: text},
		})
		return err
	}
	network, err := cloudinit.NetworkData(cloudinit.Network{MAC: st.mac(), Static: d.static})
	if err != nil {
		return fmt.Errorf("render network data of instance %s: %w", st.key, err)
	}
	st.cloudInit, err = retry(ctx, s, func(ctx context.Context) (*corev1.Secret, error) {
		return s.client.Core.Secrets(st.key.Namespace).Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: st.key.Namespace, Name: st.names.CloudInit, Labels: vm.Labels(st.key.Name), Annotations: annotations,
			},
			Type: corev1.SecretTypeOpaque,
			Data: map[string][]byte{keyUserData: text, keyNetworkData: network},
		}, metav1.CreateOptions{FieldManager: fieldManager})
	})
	return wrap(err, "create secret %s/%s", st.key.Namespace, st.names.CloudInit)
}

// mac is the hardware address of the data interface.
func (st *standing) mac() string {
	if st.vm != nil {
		return vm.MAC(st.vm)
	}
	return st.held.MAC
}
