package instance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/pki"
	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// Keys of the credentials Secret.
const (
	keyUser          = "admin_user"
	keyPassword      = "admin_password"
	keyNextPassword  = "admin_password_next" // only while a rotation is under way
	keyCACert        = "ca_cert"
	keyCAKey         = "ca_key" // only until the instance was available
	keyInstanceID    = "instance_id"
	keyMAC           = "mac_address"
	keyHost          = "host"
	keyPort          = "port"
	keyDBName        = "dbname"
	keyEndpoint      = "endpoint"
	keyConnectionURI = "connection_uri"
	keyJDBCURL       = "jdbc_url"
)

// credentials is the content of a credentials Secret: the truth about the
// instance's identity, its CA and its password.
type credentials struct {
	User, Password, CACert, CAKey, InstanceID, MAC string

	CAValidUntil    time.Time
	OwnerID         string
	UID             string
	ResourceVersion string
}

// String keeps the secrets out of whatever prints the value.
func (c credentials) String() string { return "credentials of instance " + c.InstanceID }

// GoString does the same for %#v.
func (c credentials) GoString() string { return c.String() }

// finished says whether the instance was available at some time: its CA key
// was deliberately removed then.
func (c credentials) finished() bool { return c.CAKey == "" }

// SecretError says what is wrong with one key of a Secret. It never holds the
// key's value.
type SecretError struct {
	Namespace, Name, Key string
	Problem              string
}

// Error names Secret, key and problem.
func (e *SecretError) Error() string {
	return fmt.Sprintf("read secret %s/%s: key %q %s", e.Namespace, e.Name, e.Key, e.Problem)
}

// Advice says what to do: the provider never writes such a Secret itself.
func (e *SecretError) Advice() string {
	return fmt.Sprintf("Restore the Secret from a backup; the provider repairs or overwrites none. To see what it holds: kubectl -n %s describe secret %s", e.Namespace, e.Name)
}

// parseCredentials reads a credentials Secret that this provider wrote.
// Whether ca_key has to be there depends on what else stands: the caller judges.
func parseCredentials(secret *corev1.Secret) (credentials, error) {
	fault := func(key, problem string) error {
		return &SecretError{Namespace: secret.Namespace, Name: secret.Name, Key: key, Problem: problem}
	}
	for _, key := range []string{keyUser, keyPassword, keyCACert, keyInstanceID, keyMAC} {
		value, present := secret.Data[key]
		if !present {
			return credentials{}, fault(key, "is missing")
		}
		if len(value) == 0 {
			return credentials{}, fault(key, "is empty")
		}
	}
	c := credentials{
		User:            string(secret.Data[keyUser]),
		Password:        string(secret.Data[keyPassword]),
		CACert:          string(secret.Data[keyCACert]),
		CAKey:           string(secret.Data[keyCAKey]),
		InstanceID:      string(secret.Data[keyInstanceID]),
		MAC:             string(secret.Data[keyMAC]),
		OwnerID:         secret.Annotations[vm.AnnotationOwner],
		UID:             string(secret.UID),
		ResourceVersion: secret.ResourceVersion,
	}
	if parsed, err := uuid.Parse(c.InstanceID); err != nil || parsed.String() != c.InstanceID {
		return credentials{}, fault(keyInstanceID, "is not a UUID in lower case")
	}
	if mac, err := net.ParseMAC(c.MAC); err != nil || len(mac) != 6 || mac[0]&1 != 0 {
		return credentials{}, fault(keyMAC, "is not the hardware address of one interface")
	}
	cert, err := pki.ParseCertificate(c.CACert)
	if err != nil {
		return credentials{}, fault(keyCACert, "is not one CA certificate: "+err.Error())
	}
	c.CAValidUntil = cert.NotAfter
	if value, present := secret.Data[keyCAKey]; present {
		if len(value) == 0 {
			return credentials{}, fault(keyCAKey, "is empty")
		}
		if pki.CheckKey(c.CACert, c.CAKey) != nil {
			return credentials{}, fault(keyCAKey, "is not the private key of "+keyCACert)
		}
	}
	return c, nil
}

// newCredentials draws everything that is random about a new instance.
func newCredentials(spec Spec, ownerID string) (*corev1.Secret, error) {
	authority, err := pki.NewAuthority("DBaaS "+spec.Name, time.Now())
	if err != nil {
		return nil, fmt.Errorf("make certificate authority: %w", err)
	}
	names := vm.NamesOf(spec.Name)
	id := uuid.NewString()
	password := string(spec.Master.Supplied)
	if spec.Master.Mode != PasswordSupplied {
		password = newPassword()
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   spec.Namespace,
			Name:        names.Credentials,
			Labels:      vm.Labels(spec.Name),
			Annotations: map[string]string{vm.AnnotationInstanceID: id, vm.AnnotationOwner: ownerID},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			keyUser:       []byte(spec.MasterUsername),
			keyPassword:   []byte(password),
			keyCACert:     []byte(authority.CertPEM),
			keyCAKey:      []byte(authority.KeyPEM),
			keyInstanceID: []byte(id),
			keyMAC:        []byte(newMAC()),
		},
	}, nil
}

// newPassword returns 52 letters and digits, 260 bit.
func newPassword() string { return rand.Text() + rand.Text() }

// newMAC draws a locally administered unicast address. One derived from the
// name would collide between two clusters on one VLAN.
func newMAC() string {
	mac := make(net.HardwareAddr, 6)
	_, _ = rand.Read(mac) // documented never to fail
	mac[0] = mac[0]&^0x01 | 0x02
	return mac.String()
}

// claimCredentials settles whose instance this is: it creates the credentials
// Secret, or takes over the one that an earlier create left. Afterwards the
// Secret carries the owner id, and what it holds is the truth.
func (s *Store) claimCredentials(ctx context.Context, spec Spec, ownerID string) (*standing, error) {
	for {
		stands, err := s.standHalted(ctx, spec.Key())
		if err != nil {
			return nil, err
		}
		if err := stands.admit(spec); err != nil {
			return nil, err
		}
		secret, err := s.claimOnce(ctx, spec, ownerID, stands)
		if overtaken(err) {
			// Somebody else was faster. What stands now is looked at afresh.
			if err := pause(ctx, s.pace.first); err != nil {
				return nil, fmt.Errorf("claim secret %s/%s: %w", spec.Namespace, stands.names.Credentials, err)
			}
			continue
		}
		if err != nil && stands.credentials == nil && !refused(err) {
			// The answer was lost: the Secret may have been created.
			return nil, &LeftoverError{Err: err, Namespace: spec.Namespace, Secrets: []string{stands.names.Credentials}}
		}
		if err != nil {
			return nil, err
		}
		stands.credentials = secret
		stands.held, err = parseCredentials(secret)
		return stands, err
	}
}

// overtaken says whether a write failed since what it was meant for is not
// what stands any more. A missing namespace is something else.
func overtaken(err error) bool {
	if _, final := errors.AsType[*FieldError](err); final {
		return false
	}
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// inNamespace explains a creation that was answered with "not found": what is
// missing is the namespace.
func inNamespace(spec Spec, err error) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	return &FieldError{Field: FieldNamespace, Err: err, Advice: fmt.Sprintf("Create the namespace %s first: the provider never does.", spec.Namespace)}
}

// claimOnce returns the stored Secret, or a conflict, "already exists" or
// "not found" when what was read is not what stands any more.
func (s *Store) claimOnce(ctx context.Context, spec Spec, ownerID string, stands *standing) (*corev1.Secret, error) {
	secrets := s.client.Core.Secrets(spec.Namespace)
	if stands.credentials == nil {
		wanted, err := newCredentials(spec, ownerID)
		if err != nil {
			return nil, err
		}
		s.report(ctx, "creating secret "+wanted.Name)
		stored, err := retry(ctx, s, func(ctx context.Context) (*corev1.Secret, error) {
			return secrets.Create(ctx, wanted, metav1.CreateOptions{FieldManager: fieldManager})
		})
		return stored, inNamespace(spec, wrap(err, "create secret %s/%s", spec.Namespace, wanted.Name))
	}
	s.report(ctx, "reusing secret "+stands.credentials.Name)
	return s.patchSecret(ctx, stands.credentials, change{
		"metadata": change{"annotations": change{vm.AnnotationOwner: ownerID}},
	})
}

// patchSecret changes a Secret as it was read; a conflict says that it is not
// that Secret any more.
func (s *Store) patchSecret(ctx context.Context, read *corev1.Secret, c change) (*corev1.Secret, error) {
	body, err := c.onVersion(read)
	if err != nil {
		return nil, fmt.Errorf("patch secret %s/%s: %w", read.Namespace, read.Name, err)
	}
	stored, err := retry(ctx, s, func(ctx context.Context) (*corev1.Secret, error) {
		return s.client.Core.Secrets(read.Namespace).Patch(ctx, read.Name, mergePatch, body, metav1.PatchOptions{FieldManager: fieldManager})
	})
	return stored, wrap(err, "patch secret %s/%s", read.Namespace, read.Name)
}
