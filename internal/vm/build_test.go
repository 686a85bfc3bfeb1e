package vm_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/wso2/terraform-provider-dbaas/internal/class"
	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

var update = flag.Bool("update", false, "write the golden files")

func desired() vm.Desired {
	return vm.Desired{
		Namespace:         "tenant-acme",
		Name:              "orders",
		InstanceID:        "5b9f0a52-7d0f-4c1a-9a55-0b1a6a5d8c11",
		ClassName:         "db.t3.medium",
		Class:             class.Class{VCPU: 2, MemoryMiB: 4096, MaxConnections: 150},
		StorageGiB:        50,
		OSDiskGiB:         20,
		ImageID:           "default/debian-12",
		ImageStorageClass: "lh-0a3c",
		OSImage:           "debian-12-generic-amd64.qcow2",
		StorageType:       "longhorn",
		NetworkRef:        "default/vm-net-100",
		MAC:               "02:5b:9f:00:11:22",
		EngineVersion:     "15",
		DBName:            "orders",
		MasterUsername:    "dbadmin",
		Port:              5432,
		PasswordMode:      vm.PasswordManaged,
		ConfigHash:        "c0ffee",
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got), -update writes it anew:\n%s", path, diff)
	}
}

func manifest(t *testing.T, d vm.Desired) []byte {
	t.Helper()
	v, err := vm.Build(d)
	if err != nil {
		t.Fatal(err)
	}
	m, err := vm.Manifest(v)
	if err != nil {
		t.Fatal(err)
	}
	b, err := yaml.Marshal(m.Object)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBuildWritesThisManifest(t *testing.T) {
	golden(t, "vm.yaml", manifest(t, desired()))
}

func TestBuildWritesWhatIsOptional(t *testing.T) {
	d := desired()
	d.DataAccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	d.DeletionProtection = true
	d.DataVolumeUID = "kept-claim"
	d.Tags = map[string]string{"team": "payments"}
	golden(t, "vm-optional.yaml", manifest(t, d))
}

func TestBuildTakesMemoryThatIsNoWholeGiB(t *testing.T) {
	d := desired()
	d.Class = class.Class{VCPU: 3, MemoryMiB: 1536, MaxConnections: 10}
	v, err := vm.Build(d)
	if err != nil {
		t.Fatal(err)
	}
	if vcpu, memory := vm.Shape(v); vcpu != 3 || memory != 1536 {
		t.Errorf("Shape = %d vCPU, %d MiB, want 3 and 1536", vcpu, memory)
	}
}

// Harvester takes a reserve out of the guest's memory; the class is the limit.
// Where memory can be plugged in, the limit is the ceiling.
func TestShapeIsTheClassWhateverHarvesterMakesOfIt(t *testing.T) {
	v, err := vm.Build(desired())
	if err != nil {
		t.Fatal(err)
	}
	memory := v.Spec.Template.Spec.Domain.Memory
	memory.Guest = new(resource.MustParse("3996Mi"))
	if _, got := vm.Shape(v); got != 4096 {
		t.Errorf("Shape gives %d MiB with a reserve taken out, want 4096", got)
	}
	memory.MaxGuest = new(resource.MustParse("16Gi"))
	if _, got := vm.Shape(v); got != 3996 {
		t.Errorf("Shape gives %d MiB where memory can be plugged in, want the guest's 3996", got)
	}
	v.Spec.Template.Spec.Domain.CPU = nil
	if got, _ := vm.Shape(v); got != 2 {
		t.Errorf("Shape gives %d vCPU without a topology, want the limit's 2", got)
	}
}

// What Build writes is all that an import can read.
func TestReadsGiveBackWhatBuildWrote(t *testing.T) {
	d := desired()
	d.DeletionProtection = true
	d.DataVolumeUID = "u1"
	v, err := vm.Build(d)
	if err != nil {
		t.Fatal(err)
	}
	type reads struct {
		Record       vm.Record
		Disks        vm.Disks
		VCPU, Memory int64
		Network, MAC string
		Secret, Hash string
		Running      bool
		Ever         bool
		Operator     bool
		Ours         bool
	}
	var got reads
	got.Record = vm.ReadRecord(v)
	got.Disks = vm.DisksOf(v)
	got.VCPU, got.Memory = vm.Shape(v)
	got.Network, got.MAC = vm.NetworkRef(v), vm.MAC(v)
	got.Secret, got.Hash = vm.CloudInitSecret(v), vm.TemplateHash(v)
	got.Running, got.Ever = vm.WantsRunning(v), vm.EverAvailable(v)
	got.Operator, got.Ours = vm.OperatorManaged(v), vm.Ours(v, "orders")
	want := reads{
		Record: vm.Record{
			InstanceID: d.InstanceID, ClassName: "db.t3.medium", EngineVersion: "15", DBName: "orders",
			MasterUsername: "dbadmin", Port: 5432, OSImage: "debian-12-generic-amd64.qcow2",
			DeletionProtection: true, PasswordMode: vm.PasswordManaged, DataVolumeUID: "u1",
		},
		Disks: vm.Disks{OSVolume: "pg-orders-os", DataVolume: "pg-orders-data"},
		VCPU:  2, Memory: 4096,
		Network: "default/vm-net-100", MAC: "02:5b:9f:00:11:22",
		Secret: "pg-orders-cloudinit", Hash: "c0ffee",
		Running: true, Ours: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reads (-want +got):\n%s", diff)
	}
}

func TestNamesFitKubernetesForTheLongestInstanceName(t *testing.T) {
	const longest = 52
	name := make([]byte, longest)
	for i := range name {
		name[i] = 'a'
	}
	// A Service's name is a DNS label.
	if n := vm.NamesOf(string(name)).MetricsService; len(n) > 63 {
		t.Errorf("metrics service %q has %d characters, more than 63", n, len(n))
	}
}

func TestReadsOfAnOperatorMadeMachine(t *testing.T) {
	running := true
	v := &kubevirtv1.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "tenant-acme", Name: "pg-legacy",
			OwnerReferences: []metav1.OwnerReference{{Kind: "DBInstance", Name: "legacy"}},
		},
		Spec: kubevirtv1.VirtualMachineSpec{
			Running: &running,
			Template: &kubevirtv1.VirtualMachineInstanceTemplateSpec{Spec: kubevirtv1.VirtualMachineInstanceSpec{
				Domain: kubevirtv1.DomainSpec{
					CPU: &kubevirtv1.CPU{Cores: 1, Sockets: 2, Threads: 2},
					Devices: kubevirtv1.Devices{Disks: []kubevirtv1.Disk{
						{Name: "seed"}, {Name: "data", Serial: "pgdata"}, {Name: "rootdisk"},
					}},
				},
				Networks: []kubevirtv1.Network{{Name: "data-net", NetworkSource: kubevirtv1.NetworkSource{
					Multus: &kubevirtv1.MultusNetwork{NetworkName: "vlan7"},
				}}},
				Volumes: []kubevirtv1.Volume{
					{Name: "seed", VolumeSource: kubevirtv1.VolumeSource{CloudInitNoCloud: &kubevirtv1.CloudInitNoCloudSource{}}},
					{Name: "rootdisk", VolumeSource: kubevirtv1.VolumeSource{DataVolume: &kubevirtv1.DataVolumeSource{Name: "legacy-root-8f2a"}}},
					{Name: "data", VolumeSource: kubevirtv1.VolumeSource{DataVolume: &kubevirtv1.DataVolumeSource{Name: "legacy-data-8f2a"}}},
				},
			}},
		},
	}
	if diff := cmp.Diff(vm.Disks{OSVolume: "legacy-root-8f2a", DataVolume: "legacy-data-8f2a"}, vm.DisksOf(v)); diff != "" {
		t.Errorf("DisksOf (-want +got):\n%s", diff)
	}
	if got := vm.NetworkRef(v); got != "tenant-acme/vlan7" {
		t.Errorf("NetworkRef = %q, want the VM's own namespace before the name", got)
	}
	if vcpu, _ := vm.Shape(v); vcpu != 4 {
		t.Errorf("Shape gives %d vCPU, want 1 core × 2 sockets × 2 threads", vcpu)
	}
	if !vm.OperatorManaged(v) || vm.Ours(v, "legacy") || !vm.WantsRunning(v) {
		t.Error("a machine owned by a DBInstance is the operator's, is not ours, and runs by the field running")
	}
	if diff := cmp.Diff(vm.Record{}, vm.ReadRecord(v)); diff != "" {
		t.Errorf("ReadRecord of a machine without our annotations (-want +got):\n%s", diff)
	}
}
