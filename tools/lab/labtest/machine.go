package labtest

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubevirt "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Machine is a virtual machine as Harvester's UI makes one: claim templates, a
// root disk from the image default/debian-12, a blank data disk (serial
// "pgdata"), cloud-init data in a Secret, one card on default/vm-net-100.
type Machine struct {
	// Name is the only field that must be set. Namespace is tenant-acme by default.
	Name, Namespace string
	// MAC is made from the name by default.
	MAC string
	// UserData is an empty cloud-config by default. NetworkData asks for DHCP.
	UserData, NetworkData string
	// DataSize is 2Gi by default.
	DataSize string
	// Probe is the command of the exec readiness probe; none by default.
	Probe []string
	// Halted creates the machine stopped.
	Halted bool
	// Annotations are those of the VirtualMachine, knobs for example.
	Annotations map[string]string
}

// VM names the machine, for Wait.
func (m Machine) VM() *kubevirt.VirtualMachine {
	return &kubevirt.VirtualMachine{ObjectMeta: m.meta(m.Name)}
}

// VMI names the instance, for Wait.
func (m Machine) VMI() *kubevirt.VirtualMachineInstance {
	return &kubevirt.VirtualMachineInstance{ObjectMeta: m.meta(m.Name)}
}

// RootClaim and DataClaim name the disks' claims, for Wait.
func (m Machine) RootClaim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: m.meta(m.Name + "-os")}
}

// DataClaim names the data disk's claim.
func (m Machine) DataClaim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: m.meta(m.Name + "-data")}
}

// Secret names the Secret with the cloud-init data.
func (m Machine) Secret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: m.meta(m.Name + "-cloudinit")}
}

func (m Machine) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: name}
}

// Create creates the machine's Secret and VirtualMachine as the tenant user, and
// removes all of it when the test ends. It returns m with the defaults filled in.
func (l *Lab) Create(t testing.TB, m Machine) Machine {
	t.Helper()
	m = m.withDefaults()
	t.Cleanup(func() { l.remove(t, m) })
	secret := m.Secret()
	secret.StringData = map[string]string{"userdata": m.UserData, "networkdata": m.NetworkData}
	if err := l.User.Client.Create(t.Context(), secret); err != nil {
		t.Fatalf("create the Secret of %s: %v", m.Name, err)
	}
	vm := m.Object(t, l)
	if err := l.User.Client.Create(t.Context(), vm); err != nil {
		t.Fatalf("create the machine %s: %v", m.Name, err)
	}
	return m
}

func (m Machine) withDefaults() Machine {
	set := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(m.Name)) // a hash never fails
	sum := hash.Sum32()
	set(&m.Namespace, Tenant)
	set(&m.MAC, fmt.Sprintf("02:1a:%02x:%02x:%02x:%02x", byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum)))
	set(&m.UserData, "#cloud-config\n{}\n")
	set(&m.NetworkData, fmt.Sprintf("version: 2\nethernets:\n  data:\n    match: {macaddress: %q}\n    dhcp4: true\n    dhcp-identifier: mac\n", m.MAC))
	set(&m.DataSize, "2Gi")
	return m
}

// Object is the VirtualMachine, for tests that change it before they create it.
// The root disk's class is read from the image.
func (m Machine) Object(t testing.TB, l *Lab) *kubevirt.VirtualMachine {
	t.Helper()
	m = m.withDefaults()
	image := Unstructured("harvesterhci.io/v1beta1", "VirtualMachineImage", "default", "debian-12")
	if err := l.Admin.Client.Get(t.Context(), client.ObjectKeyFromObject(image), image); err != nil {
		t.Fatalf("get the image: %v", err)
	}
	class, _, _ := unstructured.NestedString(image.Object, "status", "storageClassName")
	root := claim(m.RootClaim().Name, class, "20Gi")
	root.Annotations = map[string]string{"harvesterhci.io/imageId": "default/debian-12"}
	templates, err := json.Marshal([]corev1.PersistentVolumeClaim{root, claim(m.DataClaim().Name, "harvester-longhorn", m.DataSize)})
	if err != nil {
		t.Fatal(err)
	}
	vm := m.VM()
	vm.Labels = map[string]string{"harvesterhci.io/creator": "harvester"}
	vm.Annotations = map[string]string{
		"harvesterhci.io/volumeClaimTemplates": string(templates),
		"harvesterhci.io/vmRunStrategy":        "Always",
	}
	maps.Copy(vm.Annotations, m.Annotations)
	vm.Spec.RunStrategy = new(kubevirt.RunStrategyAlways)
	if m.Halted {
		vm.Spec.RunStrategy = new(kubevirt.RunStrategyHalted)
	}
	vm.Spec.Template = m.template()
	return vm
}

func (m Machine) template() *kubevirt.VirtualMachineInstanceTemplateSpec {
	limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	disk := func(name, serial string, boot *uint) kubevirt.Disk {
		return kubevirt.Disk{
			Name: name, Serial: serial, BootOrder: boot,
			DiskDevice: kubevirt.DiskDevice{Disk: &kubevirt.DiskTarget{Bus: kubevirt.DiskBusVirtio}},
		}
	}
	volume := func(name, claim string) kubevirt.Volume {
		return kubevirt.Volume{Name: name, VolumeSource: kubevirt.VolumeSource{PersistentVolumeClaim: &kubevirt.PersistentVolumeClaimVolumeSource{
			PersistentVolumeClaimVolumeSource: corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}}
	}
	secret := &corev1.LocalObjectReference{Name: m.Secret().Name}
	t := &kubevirt.VirtualMachineInstanceTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"harvesterhci.io/vmName": m.Name}},
		Spec: kubevirt.VirtualMachineInstanceSpec{
			EvictionStrategy: new(kubevirt.EvictionStrategyLiveMigrateIfPossible),
			Hostname:         m.Name,
			Domain: kubevirt.DomainSpec{
				Machine:   &kubevirt.Machine{Type: "q35"},
				CPU:       &kubevirt.CPU{Cores: 1, Sockets: 1, Threads: 1},
				Memory:    &kubevirt.Memory{Guest: resource.NewQuantity(1<<30, resource.BinarySI)},
				Resources: kubevirt.ResourceRequirements{Limits: limits},
				Devices: kubevirt.Devices{
					Rng:   &kubevirt.Rng{},
					Disks: []kubevirt.Disk{disk("os-disk", "", new(uint(1))), disk("pgdata-disk", "pgdata", nil), disk("cloudinit", "", nil)},
					Interfaces: []kubevirt.Interface{{
						Name: "data-net", Model: "virtio", MacAddress: m.MAC,
						InterfaceBindingMethod: kubevirt.InterfaceBindingMethod{Bridge: &kubevirt.InterfaceBridge{}},
					}},
				},
			},
			Networks: []kubevirt.Network{{Name: "data-net", NetworkSource: kubevirt.NetworkSource{Multus: &kubevirt.MultusNetwork{NetworkName: "default/vm-net-100"}}}},
			Volumes: []kubevirt.Volume{
				volume("os-disk", m.RootClaim().Name), volume("pgdata-disk", m.DataClaim().Name),
				{Name: "cloudinit", VolumeSource: kubevirt.VolumeSource{CloudInitNoCloud: &kubevirt.CloudInitNoCloudSource{
					UserDataSecretRef: secret, NetworkDataSecretRef: secret,
				}}},
			},
		},
	}
	if len(m.Probe) > 0 {
		t.Spec.ReadinessProbe = &kubevirt.Probe{
			PeriodSeconds: 2, TimeoutSeconds: 5, SuccessThreshold: 1, FailureThreshold: 3,
			Handler: kubevirt.Handler{Exec: &corev1.ExecAction{Command: m.Probe}},
		}
	}
	return t
}

func claim(name, class, size string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			VolumeMode:       new(corev1.PersistentVolumeBlock),
			StorageClassName: new(class),
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
}

// remove deletes the machine and then its claims, whatever of it is there.
func (l *Lab) remove(t testing.TB, m Machine) {
	t.Helper()
	ctx := withoutCancel(t)
	foreground := client.PropagationPolicy(metav1.DeletePropagationForeground)
	gone := func(object client.Object, options ...client.DeleteOption) {
		if err := client.IgnoreNotFound(l.Admin.Client.Delete(ctx, object, options...)); err != nil {
			t.Errorf("clean up: delete %s: %v", object.GetName(), err)
			return
		}
		if err := l.awaitGone(ctx, object); err != nil {
			t.Errorf("clean up: %v", err)
		}
	}
	gone(m.VM(), foreground)
	gone(m.RootClaim())
	gone(m.DataClaim())
	gone(m.Secret())
}

// Name makes a name from the test's, short enough for every object's name.
func Name(t testing.TB) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(t.Name())) // a hash never fails
	var letters strings.Builder
	for _, r := range strings.ToLower(strings.TrimPrefix(t.Name(), "Test")) {
		if r >= 'a' && r <= 'z' && letters.Len() < 24 {
			letters.WriteRune(r)
		}
	}
	return fmt.Sprintf("%s-%08x", letters.String(), hash.Sum32())
}

// Unstructured names an object whose type the clients do not know.
func Unstructured(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := new(unstructured.Unstructured)
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func newOf[T any]() T {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
}
