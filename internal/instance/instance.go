// Package instance is the life of one database instance on a Harvester
// cluster: what has to stand before it, its credentials, its virtual machine,
// the wait until it serves, and its end.
//
// The package knows Kubernetes and nothing of Terraform. Every exported
// operation of [Store] takes plain values and honours the deadline of its
// context.
package instance

import (
	"context"
	"time"

	"github.com/wso2/terraform-provider-dbaas/internal/class"
	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
	"github.com/wso2/terraform-provider-dbaas/internal/cluster"
	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// Key names one instance on the cluster. InstanceID and OwnerID are what the
// caller remembers of it; they may be empty when it remembers nothing (import,
// data sources), and then nothing is compared with them.
type Key struct {
	Namespace, Name     string
	InstanceID, OwnerID string
}

// String returns namespace/name, the id of the Terraform resource.
func (k Key) String() string { return k.Namespace + "/" + k.Name }

// Spec is what somebody wants of an instance. All values are settled: nothing
// is null or unknown, defaults are filled in.
type Spec struct {
	Namespace, Name string

	ClassName  string
	Class      class.Class
	StorageGiB int64
	// NetworkRef is the NetworkAttachmentDefinition, always namespace/name.
	NetworkRef     string
	EngineVersion  string // PostgreSQL major
	DBName         string
	MasterUsername string
	Port           int64
	// OSImage is the image as the user wrote it: ns/name, name or display name.
	OSImage     string
	StorageType string
	Static      *cloudinit.Static // nil = DHCP

	// Parameters are the owner's settings in postgresql.conf, nil for none.
	Parameters map[string]string
	// The following are sorted sets, nil when empty; only of AllowedCIDRs nil
	// means every network, and empty, but not nil, none.
	Extensions    []string
	AllowedCIDRs  []string
	DNSNames      []string
	SSHPublicKeys []string
	PackageSource cloudinit.PackageSource
	// Monitoring is nil when nobody is to read metrics.
	Monitoring *cloudinit.Monitoring

	// Running is false for an instance that is to stand still, once it was available.
	Running            bool
	Master             Master
	DeletionProtection bool
	// Retain says that a delete keeps the data volume and the credentials Secret.
	Retain bool
	// Tags are shown by Harvester; nil for none.
	Tags map[string]string
}

// Key returns the name under which the wanted instance stands.
func (s Spec) Key() Key { return Key{Namespace: s.Namespace, Name: s.Name} }

// SecretStatus says whether the credentials Secret holds what it should.
type SecretStatus string

// The two states of the credentials Secret. Impaired is legitimate once the
// instance was available: somebody may remove the password after fetching it.
const (
	SecretActive   SecretStatus = "active"
	SecretImpaired SecretStatus = "impaired"
)

// Instance is what was read of an instance.
type Instance struct {
	// Spec holds the arguments as they stand on the cluster. What an
	// operator-made instance does not record is the zero value.
	Spec

	InstanceID, OwnerID string
	// Names are those of the objects; of the two for metrics only while they stand.
	Names vm.Names

	Status, Reason string // the closed lists of the documentation
	// Detail is a sentence about what was last seen, for messages.
	Detail  string
	Address string // empty until there is one
	// LastAddress is the one that the Secret tells, empty until there was one.
	LastAddress string
	// MachineKnown is false when the virtual machine is gone, and with it what
	// only its object records.
	MachineKnown bool

	CACertPEM    string
	CAValidUntil time.Time
	// MasterPassword is empty unless the mode is PasswordGenerated, and when the Secret does not hold it any more.
	MasterPassword string
	SecretStatus   SecretStatus
	SecretReason   string

	VCPU, MemoryMiB, MaxConnections int64
	// EngineVersionActual is empty until the guest was ready once.
	EngineVersionActual string

	// EverAvailable says whether the instance served at least once. Until then
	// there is no data to protect.
	EverAvailable bool
	// GuestKnown says whether what the guest applies was read, and Static; false
	// when the Secret that records it is gone, and then nil does not mean DHCP.
	GuestKnown bool
	// OperatorManaged says that the DBaaS operator made the instance: it can be
	// read, never changed or deleted from here.
	OperatorManaged bool

	// Warnings tell of what did not go well although the operation succeeded.
	Warnings []string
}

// Key returns the instance's name and identity.
func (i *Instance) Key() Key {
	return Key{Namespace: i.Namespace, Name: i.Name, InstanceID: i.InstanceID, OwnerID: i.OwnerID}
}

// Finding is one result of the live checks of a planned create.
type Finding struct {
	Field   Field // empty: about the instance as a whole
	Warning bool  // false: the plan must fail
	Summary string
	Detail  string
}

// Intent says why Delete is called.
type Intent string

// The reasons for a delete. IntentOther stands for a taint or a -replace,
// which Terraform does not announce.
const (
	IntentDestroy Intent = "destroy"
	IntentRename  Intent = "rename"
	IntentOther   Intent = "other"
)

// DeleteRequest names the instance to delete. The ids of the Key are those of
// the state: an instance with other ones is left alone.
type DeleteRequest struct {
	Key
	Intent Intent
	// Retain keeps data volume and credentials Secret. So does what the virtual
	// machine records: it takes both to delete data.
	Retain bool
}

// Store creates, reads, changes and deletes instances on one cluster.
type Store struct {
	client *cluster.Client
	report func(ctx context.Context, message string)
	pace   pace
}

// Options are what a store may be told. The zero value is good.
type Options struct {
	// Report is called with a sentence whenever an operation takes a step or
	// sees something new while it waits. It never gets a secret.
	Report func(ctx context.Context, message string)
}

// pace is how often and how long the store looks and tries again.
type pace struct {
	poll     time.Duration // between two reads of an object that cannot be watched
	look     time.Duration // between two looks at pods, events and console
	grace    time.Duration // how long a hopeless state must last to be believed
	first    time.Duration // the first pause before a request is repeated
	longest  time.Duration // the longest such pause
	patience time.Duration // how long one refused request is repeated
	growth   time.Duration // how long a volume or filesystem may take to grow while something waits for it
	settle   time.Duration // to find out, after the deadline, whether a write took effect
}

// New returns a store on the given cluster. It sends nothing.
func New(client *cluster.Client, o Options) *Store {
	report := o.Report
	if report == nil {
		report = func(context.Context, string) {}
	}
	return &Store{client: client, report: report, pace: pace{
		poll:     2 * time.Second,
		look:     10 * time.Second,
		grace:    12 * time.Second,
		first:    250 * time.Millisecond,
		longest:  5 * time.Second,
		patience: time.Minute,
		growth:   2 * time.Minute,
		settle:   10 * time.Second,
	}}
}

// Reporting is the same store, which tells its steps to another listener.
func (s *Store) Reporting(report func(ctx context.Context, message string)) *Store {
	other := *s
	other.report = report
	return &other
}
