package vm

// Names are the names of an instance's objects, all in the instance's
// namespace.
type Names struct {
	VM, OSVolume, DataVolume, Credentials, CloudInit, MetricsService, ServiceMonitor string
}

// NamesOf returns the names that a new instance's objects get. The disks of a
// standing instance are read with DisksOf: others may have named them.
func NamesOf(instance string) Names {
	vm := "pg-" + instance
	return Names{
		VM:             vm,
		OSVolume:       vm + "-os",
		DataVolume:     vm + "-data",
		Credentials:    vm + "-credentials",
		CloudInit:      vm + "-cloudinit",
		MetricsService: vm + "-metrics",
		ServiceMonitor: vm + "-monitor",
	}
}

const prefix = "dbaas.opencloud.wso2.com/"

// Labels that the provider writes.
const (
	// LabelInstance, on every object, holds the instance's name.
	LabelInstance = prefix + "instance"
	// LabelManagedBy, on every object, holds ManagedBy.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelRole holds RolePrimary on the VM, RolePGData on the data claim.
	LabelRole = prefix + "role"
	// LabelMetrics is "true" on the metrics Service.
	LabelMetrics = prefix + "metrics"
	// LabelCreator is Harvester's; it holds ManagedBy or OperatorCreator.
	LabelCreator = "harvesterhci.io/creator"
	// LabelVMName is Harvester's; it is on the VM's template.
	LabelVMName = "harvesterhci.io/vmName"
	// LabelTagPrefix starts the labels that Harvester's UI shows as tags.
	LabelTagPrefix = "tag.harvesterhci.io/"
)

// Values of labels.
const (
	ManagedBy       = "terraform-provider-dbaas"
	OperatorCreator = "dbaas-operator"
	RolePrimary     = "primary"
	RolePGData      = "pgdata"
)

// Annotations that the provider writes. Those of a Record stand on the VM and
// on the data claim, so that a lost VM loses nothing.
const (
	AnnotationInstanceID     = prefix + "instance-id"
	AnnotationInstanceClass  = prefix + "instance-class"
	AnnotationEngineVersion  = prefix + "engine-version"
	AnnotationDBName         = prefix + "db-name"
	AnnotationMasterUsername = prefix + "master-username"
	AnnotationPort           = prefix + "port"
	AnnotationOSImage        = prefix + "os-image"

	// AnnotationOwner, on the credentials Secret, names the Create that owns
	// the instance.
	AnnotationOwner = prefix + "owner"

	// The following stand on the VM only.
	AnnotationDeletionProtection = prefix + "deletion-protection"
	AnnotationDeletionPolicy     = prefix + "deletion-policy"
	AnnotationPasswordMode       = prefix + "password-mode"
	AnnotationPasswordVersion    = prefix + "password-version"
	AnnotationPasswordRotation   = prefix + "password-rotation"
	// AnnotationDataVolumeUID is the uid of the data claim, recorded once it
	// exists: Harvester re-creates a lost claim blank, under the same name.
	AnnotationDataVolumeUID = prefix + "data-volume-uid"
	// AnnotationAvailableSince is the RFC 3339 time of the first "available".
	AnnotationAvailableSince = prefix + "available-since"

	// AnnotationConfigHash is on the VM's template, and so on the VMI, and on
	// the cloud-init Secret.
	AnnotationConfigHash = prefix + "config-hash"
)

// Annotations of Harvester.
const (
	// AnnotationClaimTemplates holds the claims that Harvester creates for a
	// VM, as a JSON list.
	AnnotationClaimTemplates = "harvesterhci.io/volumeClaimTemplates"
	// AnnotationRunStrategy is the strategy that Harvester gives a VM when it
	// is started; without it that is RerunOnFailure.
	AnnotationRunStrategy = "harvesterhci.io/vmRunStrategy"
	// AnnotationQuota holds why Harvester halted a VM: the namespace's quota.
	AnnotationQuota = "harvesterhci.io/insufficient-resource-quota"
	// AnnotationImageID, on a claim, is the image it starts as a copy of.
	AnnotationImageID = "harvesterhci.io/imageId"
)

// The names inside the VM.
const (
	// DataNetwork names the interface and network that the database listens on.
	DataNetwork   = "data-net"
	OSDisk        = "os-disk"
	DataDisk      = "pgdata-disk"
	CloudInitDisk = "cloudinit"
	// DataDiskSerial is how the guest finds its data disk, never by position.
	DataDiskSerial = "pgdata"
	// ReadyCommand is the readiness probe; it runs in the guest. It has no
	// arguments: KubeVirt pastes those unescaped into JSON.
	ReadyCommand = "/usr/local/sbin/dbaas-ready"
	// ConsoleContainer is the launcher pod's container whose log is the
	// guest's serial console.
	ConsoleContainer = "guest-console-log"
)

// Labels returns the labels that every object of an instance has.
func Labels(instance string) map[string]string {
	return map[string]string{LabelInstance: instance, LabelManagedBy: ManagedBy}
}
