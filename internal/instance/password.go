package instance

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// PasswordMode says where the master password comes from and who keeps it.
type PasswordMode = vm.PasswordMode

// The three password modes.
const (
	PasswordGenerated = vm.PasswordGenerated // drawn; in the Secret and in Terraform's state
	PasswordManaged   = vm.PasswordManaged   // drawn; in the Secret only
	PasswordSupplied  = vm.PasswordSupplied  // the user's; in the Secret only
)

// A Password is one that somebody supplied. It does not print.
type Password string

// String keeps the password out of whatever prints the value.
func (Password) String() string { return "(password)" }

// GoString does the same for %#v.
func (p Password) GoString() string { return p.String() }

// Master is how the master password is wanted.
type Master struct {
	Mode PasswordMode
	// Supplied is the password of mode PasswordSupplied, else empty. It is never read back.
	Supplied Password
	// Version and Rotation are the user's numbers, empty for none: another
	// Version wants the supplied password set, another Rotation a new drawn one.
	Version, Rotation string
	// PriorVersion and PriorRotation are the numbers that the caller remembers of
	// the password in force: what counts when the cluster's record is lost.
	PriorVersion, PriorRotation string
}

// rotates says whether a password is to be set that differs from the one
// that was recorded with.
func (m Master) rotates(recorded passwordRecord) bool {
	if m.Mode == PasswordSupplied {
		return m.Supplied != "" && m.Version != recorded.version
	}
	return m.Rotation != "" && m.Rotation != recorded.rotation
}

func (m Master) record() passwordRecord {
	return passwordRecord{version: m.Version, rotation: m.Rotation}
}

// passwordRecord is which of the user's numbers the password in force belongs to.
type passwordRecord struct{ version, rotation string }

func passwordRecordOf(o metav1.Object) passwordRecord {
	a := o.GetAnnotations()
	return passwordRecord{version: a[vm.AnnotationPasswordVersion], rotation: a[vm.AnnotationPasswordRotation]}
}

// annotations are the change that records r; nothing removes an earlier record.
func (r passwordRecord) annotations() change {
	c := change{vm.AnnotationPasswordVersion: nil, vm.AnnotationPasswordRotation: nil}
	if r.version != "" {
		c[vm.AnnotationPasswordVersion] = r.version
	}
	if r.rotation != "" {
		c[vm.AnnotationPasswordRotation] = r.rotation
	}
	return c
}

// next is the password that a rotation has begun to set, empty for none.
func (st *standing) next() string {
	if st.credentials == nil || !vm.Ours(st.credentials, st.key.Name) {
		return ""
	}
	return string(st.credentials.Data[keyNextPassword])
}

// passwordRecord is which numbers the password in force belongs to. While a
// rotation is under way the Secret tells them of the password to come; once
// that is in force and the VM has not been told yet, the Secret knows better.
func (st *standing) passwordRecord() passwordRecord {
	if st.credentials != nil && st.next() == "" {
		if r := passwordRecordOf(st.credentials); r != (passwordRecord{}) {
			return r
		}
	}
	if st.vm != nil {
		return passwordRecordOf(st.vm)
	}
	return passwordRecord{}
}

// checkSupplied refuses a Secret that holds another password than the one
// supplied for the same instance.
func checkSupplied(secret *corev1.Secret, m Master) error {
	if m.Mode != PasswordSupplied || string(secret.Data[keyPassword]) == string(m.Supplied) {
		return nil
	}
	return &FieldError{
		Field: FieldPassword,
		Err: fmt.Errorf("continue instance: secret %s/%s of an earlier attempt holds another password in %s",
			secret.Namespace, secret.Name, keyPassword),
		Advice: supplyAdvice(secret),
	}
}

func supplyAdvice(secret *corev1.Secret) string {
	if _, unfinished := secret.Data[keyCAKey]; !unfinished {
		return "It is the password of the data that was kept. Apply with it first, and then with the new one and another master_password_wo_version; or choose another name."
	}
	return fmt.Sprintf("Either apply with the password that the Secret holds, or remove what the earlier attempt left: kubectl -n %s delete vm,secret,pvc -l %s=%s,%s=%s",
		secret.Namespace, vm.LabelInstance, secret.Labels[vm.LabelInstance], vm.LabelManagedBy, vm.ManagedBy)
}
