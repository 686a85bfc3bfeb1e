package vm

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A PasswordMode says where the master password comes from and where it is
// kept beside the credentials Secret.
type PasswordMode string

// The three password modes.
const (
	// PasswordGenerated is drawn by the provider and also in Terraform's state.
	PasswordGenerated PasswordMode = "generated"
	// PasswordManaged is drawn by the provider and only in the Secret.
	PasswordManaged PasswordMode = "managed"
	// PasswordSupplied is the user's write-only value.
	PasswordSupplied PasswordMode = "supplied"
)

// A Record is what annotations keep about an instance: facts that nothing else
// on the cluster tells (two classes may have one shape) and that an import and
// the re-creation of a lost VM need.
type Record struct {
	InstanceID     string
	ClassName      string
	EngineVersion  string
	DBName         string
	MasterUsername string
	// Port is 0 when nothing readable is recorded.
	Port int64
	// OSImage is as the user wrote it.
	OSImage string

	// The following are on the VM only.
	DeletionProtection bool
	Retain             bool
	PasswordMode       PasswordMode
	// PasswordVersion and PasswordRotation are the numbers that the password in
	// force belongs to, "" for none.
	PasswordVersion, PasswordRotation string
	DataVolumeUID                     string
	// AvailableSince is zero while the instance was never available.
	AvailableSince time.Time
}

// ReadRecord reads a Record from the annotations of a VM or of a data claim.
// What is not recorded, as on an operator-made VM, stays zero.
func ReadRecord(o metav1.Object) Record {
	a := o.GetAnnotations()
	port, err := strconv.ParseInt(a[AnnotationPort], 10, 64)
	if err != nil {
		port = 0
	}
	since, err := time.Parse(time.RFC3339, a[AnnotationAvailableSince])
	if err != nil {
		since = time.Time{}
	}
	return Record{
		InstanceID:         a[AnnotationInstanceID],
		ClassName:          a[AnnotationInstanceClass],
		EngineVersion:      a[AnnotationEngineVersion],
		DBName:             a[AnnotationDBName],
		MasterUsername:     a[AnnotationMasterUsername],
		Port:               port,
		OSImage:            a[AnnotationOSImage],
		DeletionProtection: a[AnnotationDeletionProtection] == "true",
		Retain:             a[AnnotationDeletionPolicy] == PolicyRetain,
		PasswordMode:       PasswordMode(a[AnnotationPasswordMode]),
		PasswordVersion:    a[AnnotationPasswordVersion],
		PasswordRotation:   a[AnnotationPasswordRotation],
		DataVolumeUID:      a[AnnotationDataVolumeUID],
		AvailableSince:     since,
	}
}

// Values of AnnotationDeletionPolicy.
const (
	PolicyDelete = "delete"
	PolicyRetain = "retain"
)

// Policy is the value of AnnotationDeletionPolicy.
func Policy(retain bool) string {
	if retain {
		return PolicyRetain
	}
	return PolicyDelete
}

// EverAvailable says whether the instance was available at some time. An
// unreadable time still says so: it guards data.
func EverAvailable(o metav1.Object) bool {
	return o.GetAnnotations()[AnnotationAvailableSince] != ""
}

// claimAnnotations are the annotations that the VM and the data claim share.
func (r Record) claimAnnotations() map[string]string {
	return map[string]string{
		AnnotationInstanceID:     r.InstanceID,
		AnnotationInstanceClass:  r.ClassName,
		AnnotationEngineVersion:  r.EngineVersion,
		AnnotationDBName:         r.DBName,
		AnnotationMasterUsername: r.MasterUsername,
		AnnotationPort:           strconv.FormatInt(r.Port, 10),
		AnnotationOSImage:        r.OSImage,
	}
}

// vmAnnotations are the annotations of a new VM.
func (r Record) vmAnnotations() map[string]string {
	a := r.claimAnnotations()
	a[AnnotationDeletionProtection] = strconv.FormatBool(r.DeletionProtection)
	a[AnnotationDeletionPolicy] = Policy(r.Retain)
	a[AnnotationPasswordMode] = string(r.PasswordMode)
	if r.PasswordVersion != "" {
		a[AnnotationPasswordVersion] = r.PasswordVersion
	}
	if r.PasswordRotation != "" {
		a[AnnotationPasswordRotation] = r.PasswordRotation
	}
	if r.DataVolumeUID != "" {
		a[AnnotationDataVolumeUID] = r.DataVolumeUID
	}
	if !r.AvailableSince.IsZero() {
		a[AnnotationAvailableSince] = r.AvailableSince.UTC().Format(time.RFC3339)
	}
	return a
}

// OperatorManaged says whether the DBaaS operator made the object, as far as
// the object itself tells: it is owned by a DBInstance, or labelled so.
func OperatorManaged(o metav1.Object) bool {
	for _, owner := range o.GetOwnerReferences() {
		if owner.Kind == "DBInstance" {
			return true
		}
	}
	return o.GetLabels()[LabelCreator] == OperatorCreator
}

// Ours says whether the object carries the provider's labels for the instance.
func Ours(o metav1.Object, instance string) bool {
	l := o.GetLabels()
	return l[LabelManagedBy] == ManagedBy && l[LabelInstance] == instance
}
