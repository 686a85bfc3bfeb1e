package vm

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/class"
)

// Desired is everything that a new instance's VM is made of.
type Desired struct {
	Namespace, Name string

	// InstanceID is the instance's UUID.
	InstanceID string
	ClassName  string
	Class      class.Class
	// StorageGiB and OSDiskGiB are the sizes of the two disks.
	StorageGiB, OSDiskGiB int64
	// ImageID is the image object as "namespace/name"; ImageStorageClass its
	// status.storageClassName, which may differ from every guess.
	ImageID, ImageStorageClass string
	// OSImage is the image as the user wrote it.
	OSImage string
	// StorageType is the data disk's StorageClass.
	StorageType string
	// DataAccessModes are the data claim's; none means ReadWriteMany.
	DataAccessModes []corev1.PersistentVolumeAccessMode
	// NetworkRef is "namespace/nad".
	NetworkRef string
	// MAC is the data interface's hardware address.
	MAC            string
	EngineVersion  string
	DBName         string
	MasterUsername string
	Port           int64
	PasswordMode   PasswordMode
	// PasswordVersion and PasswordRotation are the user's numbers, "" for none.
	PasswordVersion, PasswordRotation string
	// DeletionProtection guards what was ever available.
	DeletionProtection bool
	// Retain keeps data volume and credentials when the instance is deleted.
	Retain bool
	// ConfigHash is the hash of the configuration in the cloud-init Secret.
	ConfigHash string
	// DataVolumeUID is the uid of a kept data claim that the VM takes over.
	DataVolumeUID string
	// AvailableSince is when the instance of a VM that is made anew was first
	// available; zero for a new one.
	AvailableSince time.Time
	// Halted makes a VM that does not run yet.
	Halted bool
	Tags   map[string]string
}

// Build returns the VM of an instance, as it is created.
func Build(d Desired) (*kubevirtv1.VirtualMachine, error) {
	names := NamesOf(d.Name)
	claims, err := d.claimTemplates(names)
	if err != nil {
		return nil, err
	}
	labels := Labels(d.Name)
	labels[LabelRole] = RolePrimary
	labels[LabelCreator] = ManagedBy
	for k, v := range d.Tags {
		labels[LabelTagPrefix+k] = v
	}
	annotations := d.record().vmAnnotations()
	annotations[AnnotationClaimTemplates] = claims
	annotations[AnnotationRunStrategy] = string(kubevirtv1.RunStrategyAlways)
	return &kubevirtv1.VirtualMachine{
		TypeMeta: metav1.TypeMeta{APIVersion: kubevirtv1.GroupVersion.String(), Kind: "VirtualMachine"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   d.Namespace,
			Name:        names.VM,
			Labels:      labels,
			Annotations: annotations,
		},
		Spec: kubevirtv1.VirtualMachineSpec{
			RunStrategy: new(d.strategy()),
			Template:    d.template(names),
		},
	}, nil
}

func (d Desired) record() Record {
	return Record{
		InstanceID:         d.InstanceID,
		ClassName:          d.ClassName,
		EngineVersion:      d.EngineVersion,
		DBName:             d.DBName,
		MasterUsername:     d.MasterUsername,
		Port:               d.Port,
		OSImage:            d.OSImage,
		DeletionProtection: d.DeletionProtection,
		Retain:             d.Retain,
		PasswordMode:       d.PasswordMode,
		PasswordVersion:    d.PasswordVersion,
		PasswordRotation:   d.PasswordRotation,
		DataVolumeUID:      d.DataVolumeUID,
		AvailableSince:     d.AvailableSince,
	}
}

func (d Desired) strategy() kubevirtv1.VirtualMachineRunStrategy {
	if d.Halted {
		return kubevirtv1.RunStrategyHalted
	}
	return kubevirtv1.RunStrategyAlways
}

// claimTemplate is one element of AnnotationClaimTemplates. It is not a
// PersistentVolumeClaim: a typed one would write an empty status.
type claimTemplate struct {
	Metadata struct {
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec corev1.PersistentVolumeClaimSpec `json:"spec"`
}

// claimTemplates renders the claims that Harvester is to create. Both are
// blocks that several nodes may attach: live migration needs that.
func (d Desired) claimTemplates(names Names) (string, error) {
	var osDisk, data claimTemplate
	osDisk.Metadata.Name = names.OSVolume
	osDisk.Metadata.Labels = Labels(d.Name)
	osDisk.Metadata.Annotations = map[string]string{AnnotationImageID: d.ImageID}
	osDisk.Spec = claimSpec(d.ImageStorageClass, d.OSDiskGiB, nil)
	data.Metadata.Name = names.DataVolume
	data.Metadata.Labels = Labels(d.Name)
	data.Metadata.Labels[LabelRole] = RolePGData
	data.Metadata.Annotations = d.record().claimAnnotations()
	data.Spec = claimSpec(d.StorageType, d.StorageGiB, d.DataAccessModes)
	b, err := json.Marshal([]claimTemplate{osDisk, data})
	if err != nil {
		return "", fmt.Errorf("marshal claim templates of %s: %w", names.VM, err)
	}
	return string(b), nil
}

func claimSpec(storageClass string, gib int64, modes []corev1.PersistentVolumeAccessMode) corev1.PersistentVolumeClaimSpec {
	if len(modes) == 0 {
		modes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	}
	return corev1.PersistentVolumeClaimSpec{
		AccessModes:      modes,
		StorageClassName: new(storageClass),
		VolumeMode:       new(corev1.PersistentVolumeBlock),
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: gibibytes(gib)},
		},
	}
}

func gibibytes(n int64) resource.Quantity { return *resource.NewQuantity(n<<30, resource.BinarySI) }

func mebibytes(n int64) resource.Quantity { return *resource.NewQuantity(n<<20, resource.BinarySI) }

// Manifest returns the VM as the request body for its creation: the typed
// object would also write an empty status.
func Manifest(v *kubevirtv1.VirtualMachine) (*unstructured.Unstructured, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("marshal virtual machine %s: %w", v.Name, err)
	}
	var o map[string]any
	if err := json.Unmarshal(b, &o); err != nil {
		return nil, fmt.Errorf("unmarshal virtual machine %s: %w", v.Name, err)
	}
	delete(o, "status")
	return &unstructured.Unstructured{Object: o}, nil
}
