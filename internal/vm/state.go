package vm

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// A Status is an instance's condition in one word.
type Status string

// All statuses.
const (
	StatusCreating  Status = "creating"
	StatusAvailable Status = "available"
	StatusModifying Status = "modifying"
	StatusStopping  Status = "stopping"
	StatusStopped   Status = "stopped"
	StatusStarting  Status = "starting"
	StatusDegraded  Status = "degraded"
	StatusFailed    Status = "failed"
	StatusDeleting  Status = "deleting"
)

// Statuses are all that an instance can have.
func Statuses() []Status {
	return []Status{
		StatusCreating, StatusAvailable, StatusModifying, StatusStopping, StatusStopped, StatusStarting,
		StatusDegraded, StatusFailed, StatusDeleting,
	}
}

// A Reason says why a Status is what it is. The empty reason means that there
// is nothing to say.
type Reason string

// All reasons.
const (
	ReasonImageImporting           Reason = "ImageImporting"
	ReasonImageFailed              Reason = "ImageFailed"
	ReasonStorageProvisioning      Reason = "StorageProvisioning"
	ReasonClaimPending             Reason = "ClaimPending"
	ReasonScheduling               Reason = "Scheduling"
	ReasonUnschedulable            Reason = "Unschedulable"
	ReasonQuotaExceeded            Reason = "QuotaExceeded"
	ReasonBooting                  Reason = "Booting"
	ReasonNoAddress                Reason = "NoAddress"
	ReasonConfiguringDatabase      Reason = "ConfiguringDatabase"
	ReasonGuestFailed              Reason = "GuestFailed"
	ReasonCrashLoop                Reason = "CrashLoop"
	ReasonNotReady                 Reason = "NotReady"
	ReasonPendingRestart           Reason = "PendingRestart"
	ReasonPasswordRotationPending  Reason = "PasswordRotationPending"
	ReasonBootstrapMaterialPresent Reason = "BootstrapMaterialPresent"
	ReasonMetricsAddressStale      Reason = "MetricsAddressStale"
	ReasonCredentialsMissing       Reason = "CredentialsMissing"
	ReasonDataVolumeReplaced       Reason = "DataVolumeReplaced"
	ReasonVMMissing                Reason = "VMMissing"
	ReasonOperatorManaged          Reason = "OperatorManaged"
)

// Observed is what was read of an instance. What was not asked for stays zero
// and is not judged.
type Observed struct {
	// VM is nil when it does not exist.
	VM *kubevirtv1.VirtualMachine
	// VMI is nil when it does not exist.
	VMI *kubevirtv1.VirtualMachineInstance
	// Failed are the machines of the VM that were seen to fail, one after the
	// other; See adds to it.
	Failed []types.UID
	// OSClaim and DataClaim are the claims behind the disks.
	OSClaim, DataClaim *corev1.PersistentVolumeClaim
	// DataClaimMissing says that the data claim was asked for and is not there.
	DataClaimMissing bool
	// Events are those of the VM, its claims and pods.
	Events []corev1.Event
	// EventsUnread says, as a clause, why Events could not be read.
	EventsUnread string
	// Console is the guest's serial console, as far as it could be read.
	Console string
	// ConsoleUnread says, as a clause, why Console could not be read.
	ConsoleUnread string
	// SecretHash is the hash of the configuration in the cloud-init Secret.
	SecretHash string
	// EverAvailable adds to what the VM's annotations say: a credentials Secret
	// without CA key tells the same.
	EverAvailable bool
	// BootstrapMaterial says that a Secret still holds what only the first boot
	// needs.
	BootstrapMaterial bool
	// RotationPending says that a rotation of the password was begun and not finished.
	RotationPending bool
	// CredentialsMissing says that the credentials Secret was asked for and
	// it, or a needed key of it, is not there.
	CredentialsMissing bool
	// MetricsFault says, as a clause, why the metrics are not read from where the
	// instance is; "" when they are, or nobody wants them.
	MetricsFault string
	// OperatorManaged adds to what the VM itself says.
	OperatorManaged bool
}

// A State is what an Observed means.
type State struct {
	Status Status
	Reason Reason
	// Address is the database's, "" while there is none.
	Address string
	// Available says that clients can log in.
	Available bool
	// Hopeless says that waiting will not help, once the state has lasted for
	// Grace: a claim's provisioner tries again, a node becomes free.
	Hopeless bool
	Grace    time.Duration
	// Detail is a sentence about what was seen, for a person to read.
	Detail string
}

// grace is how long a fault that may heal by itself must last before a wait
// is given up.
const grace = 30 * time.Second

// crashLimit is how often in a row a machine must fail before that is hopeless:
// the first failures may be a node's.
const crashLimit = 3

// See takes a VM's machine as it is now, nil if there is none, and remembers
// whether it failed. KubeVirt itself counts only machines that failed before
// they ever ran; one that crashes later it starts again at once, and its status
// never says CrashLoopBackOff.
func (o *Observed) See(machine *kubevirtv1.VirtualMachineInstance) {
	o.VMI = machine
	if failed(machine) && !slices.Contains(o.Failed, machine.UID) {
		o.Failed = append(o.Failed, machine.UID)
	}
}

func failed(i *kubevirtv1.VirtualMachineInstance) bool {
	return i != nil && i.Status.Phase == kubevirtv1.Failed
}
