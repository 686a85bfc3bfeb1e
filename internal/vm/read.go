package vm

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// Shape reads how many vCPU and how much memory (MiB) a VM asks for. Memory is
// the limit, not memory.guest, from which Harvester takes a reserve; only
// where the VM may grow while it runs is the limit a ceiling, not the shape.
func Shape(v *kubevirtv1.VirtualMachine) (vcpu, memoryMiB int64) {
	if v.Spec.Template == nil {
		return 0, 0
	}
	domain := v.Spec.Template.Spec.Domain
	limits := domain.Resources.Limits
	if cpu := domain.CPU; cpu != nil && cpu.Cores > 0 {
		vcpu = int64(cpu.Cores) * int64(max(cpu.Sockets, 1)) * int64(max(cpu.Threads, 1))
	} else {
		vcpu = limits.Cpu().Value()
	}
	memory := limits.Memory().Value()
	if m := domain.Memory; m != nil && m.Guest != nil && (memory == 0 || m.MaxGuest != nil) {
		memory = m.Guest.Value()
	}
	return vcpu, memory >> 20
}

// MachineShape reads how many vCPU and how much memory (MiB) a VM's machine was
// started with.
func MachineShape(i *kubevirtv1.VirtualMachineInstance) (vcpu, memoryMiB int64) {
	limits := i.Spec.Domain.Resources.Limits
	vcpu = limits.Cpu().Value()
	if cpu := i.Spec.Domain.CPU; cpu != nil && cpu.Cores > 0 {
		vcpu = int64(cpu.Cores) * int64(max(cpu.Sockets, 1)) * int64(max(cpu.Threads, 1))
	}
	// KubeVirt writes a ceiling for memory that is plugged in into every machine,
	// so the limit is what tells the shape.
	memory := limits.Memory().Value()
	if m := i.Spec.Domain.Memory; memory == 0 && m != nil && m.Guest != nil {
		memory = m.Guest.Value()
	}
	return vcpu, memory >> 20
}

// Disks are the claims behind a VM's disks. A name is empty when the VM has no
// such disk.
type Disks struct {
	OSVolume, DataVolume string
}

// DisksOf reads the claims of a VM, also of one that others made: their claims
// may have any name, and may be declared as DataVolumes.
func DisksOf(v *kubevirtv1.VirtualMachine) Disks {
	var found Disks
	if v.Spec.Template == nil {
		return found
	}
	spec := v.Spec.Template.Spec
	claims := map[string]string{}
	for _, volume := range spec.Volumes {
		switch {
		case volume.PersistentVolumeClaim != nil:
			claims[volume.Name] = volume.PersistentVolumeClaim.ClaimName
		case volume.DataVolume != nil:
			claims[volume.Name] = volume.DataVolume.Name
		}
	}
	osDisk, dataDisk := diskNames(spec.Domain.Devices.Disks, claims)
	return Disks{OSVolume: claims[osDisk], DataVolume: claims[dataDisk]}
}

// diskNames finds the root disk (boot order, our name, else the first claim)
// and the data disk (serial, our name, else the second claim).
func diskNames(disks []kubevirtv1.Disk, claims map[string]string) (osDisk, dataDisk string) {
	var others []string
	for _, disk := range disks {
		switch {
		case claims[disk.Name] == "":
		case disk.Serial == DataDiskSerial || disk.Name == DataDisk:
			dataDisk = disk.Name
		case osDisk == "" && (disk.Name == OSDisk || disk.BootOrder != nil && *disk.BootOrder == 1):
			osDisk = disk.Name
		default:
			others = append(others, disk.Name)
		}
	}
	if osDisk == "" && len(others) > 0 {
		osDisk, others = others[0], others[1:]
	}
	if dataDisk == "" && len(others) > 0 {
		dataDisk = others[0]
	}
	return osDisk, dataDisk
}

// NetworkRef reads the network of the data interface as "namespace/nad", "" if
// there is none. A name without a namespace means the VM's own.
func NetworkRef(v *kubevirtv1.VirtualMachine) string {
	if v.Spec.Template == nil {
		return ""
	}
	for _, network := range v.Spec.Template.Spec.Networks {
		if network.Name != DataNetwork || network.Multus == nil {
			continue
		}
		if name := network.Multus.NetworkName; strings.Contains(name, "/") {
			return name
		}
		return v.Namespace + "/" + network.Multus.NetworkName
	}
	return ""
}

// MAC reads the hardware address of the data interface, "" if there is none.
func MAC(v *kubevirtv1.VirtualMachine) string {
	if v.Spec.Template == nil {
		return ""
	}
	for _, i := range v.Spec.Template.Spec.Domain.Devices.Interfaces {
		if i.Name == DataNetwork {
			return i.MacAddress
		}
	}
	return ""
}

// CloudInitSecret reads the name of the Secret with the VM's user data, "" if
// there is none.
func CloudInitSecret(v *kubevirtv1.VirtualMachine) string {
	if v.Spec.Template == nil {
		return ""
	}
	for _, volume := range v.Spec.Template.Spec.Volumes {
		if c := volume.CloudInitNoCloud; c != nil && c.UserDataSecretRef != nil {
			return c.UserDataSecretRef.Name
		}
	}
	return ""
}

// TemplateHash reads the configuration hash that the next start will bring.
func TemplateHash(v *kubevirtv1.VirtualMachine) string {
	if v == nil || v.Spec.Template == nil {
		return ""
	}
	return v.Spec.Template.ObjectMeta.Annotations[AnnotationConfigHash]
}

// WantsRunning says whether the VM is meant to run: by its run strategy, or by
// the older field "running".
func WantsRunning(v *kubevirtv1.VirtualMachine) bool {
	if v.Spec.RunStrategy != nil {
		return *v.Spec.RunStrategy != kubevirtv1.RunStrategyHalted
	}
	return v.Spec.Running != nil && *v.Spec.Running
}

// GiB is a claim's capacity, or while it has none its request, in whole GiB
// rounded down.
func GiB(claim *corev1.PersistentVolumeClaim) int64 {
	size := claim.Status.Capacity.Storage()
	if size.IsZero() {
		size = claim.Spec.Resources.Requests.Storage()
	}
	return size.Value() >> 30
}

// Tags reads what Harvester shows as tags, nil if there are none.
func Tags(v *kubevirtv1.VirtualMachine) map[string]string {
	var tags map[string]string
	for label, value := range v.Labels {
		key, isTag := strings.CutPrefix(label, LabelTagPrefix)
		if !isTag {
			continue
		}
		if tags == nil {
			tags = map[string]string{}
		}
		tags[key] = value
	}
	return tags
}
