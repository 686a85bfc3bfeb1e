package vm

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

func (d Desired) template(names Names) *kubevirtv1.VirtualMachineInstanceTemplateSpec {
	labels := Labels(d.Name)
	labels[LabelVMName] = names.VM
	labels[LabelCreator] = ManagedBy
	// Live migration moves the machine off a node that is drained; without it
	// Harvester's webhook decides.
	eviction := kubevirtv1.EvictionStrategyLiveMigrateIfPossible
	return &kubevirtv1.VirtualMachineInstanceTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels: labels,
			// An annotation, not a label: Harvester copies the template's labels
			// to the running VMI, and then the hash would claim what the guest
			// has not been told yet.
			Annotations: map[string]string{AnnotationConfigHash: d.ConfigHash},
		},
		Spec: kubevirtv1.VirtualMachineInstanceSpec{
			EvictionStrategy: &eviction,
			Hostname:         names.VM,
			Domain:           d.domain(),
			Affinity:         spread(),
			Networks: []kubevirtv1.Network{{
				Name: DataNetwork,
				NetworkSource: kubevirtv1.NetworkSource{
					Multus: &kubevirtv1.MultusNetwork{NetworkName: d.NetworkRef},
				},
			}},
			ReadinessProbe: readinessProbe(),
			Volumes:        volumes(names),
		},
	}
}

func (d Desired) domain() kubevirtv1.DomainSpec {
	memory := mebibytes(d.Class.MemoryMiB)
	disk := kubevirtv1.DiskDevice{Disk: &kubevirtv1.DiskTarget{Bus: kubevirtv1.DiskBusVirtio}}
	return kubevirtv1.DomainSpec{
		CPU:    &kubevirtv1.CPU{Cores: uint32(d.Class.VCPU), Sockets: 1, Threads: 1},
		Memory: &kubevirtv1.Memory{Guest: new(memory)},
		Resources: kubevirtv1.ResourceRequirements{Limits: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewQuantity(d.Class.VCPU, resource.DecimalSI),
			corev1.ResourceMemory: memory,
		}},
		Devices: kubevirtv1.Devices{
			Rng: &kubevirtv1.Rng{},
			// The guest reports progress and failure on its serial console.
			LogSerialConsole: new(true),
			Disks: []kubevirtv1.Disk{
				{Name: OSDisk, BootOrder: new(uint(1)), DiskDevice: disk},
				{Name: DataDisk, Serial: DataDiskSerial, DiskDevice: disk},
				{Name: CloudInitDisk, DiskDevice: disk},
			},
			Interfaces: []kubevirtv1.Interface{{
				Name:                   DataNetwork,
				Model:                  "virtio",
				MacAddress:             d.MAC,
				InterfaceBindingMethod: kubevirtv1.InterfaceBindingMethod{Bridge: &kubevirtv1.InterfaceBridge{}},
			}},
		},
	}
}

// spread prefers a node that runs no other instance.
func spread() *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 100,
			PodAffinityTerm: corev1.PodAffinityTerm{
				TopologyKey: corev1.LabelHostname,
				LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
					Key:      LabelInstance,
					Operator: metav1.LabelSelectorOpExists,
				}}},
			},
		}},
	}}
}

// readinessProbe asks the guest itself, through its agent: Terraform needs no
// route to the database's network. KubeVirt adds ten seconds to the first one.
func readinessProbe() *kubevirtv1.Probe {
	return &kubevirtv1.Probe{
		Handler:          kubevirtv1.Handler{Exec: &corev1.ExecAction{Command: []string{ReadyCommand}}},
		PeriodSeconds:    2,
		TimeoutSeconds:   5,
		SuccessThreshold: 1,
		FailureThreshold: 15,
	}
}

func volumes(names Names) []kubevirtv1.Volume {
	claim := func(disk, name string) kubevirtv1.Volume {
		return kubevirtv1.Volume{Name: disk, VolumeSource: kubevirtv1.VolumeSource{
			PersistentVolumeClaim: &kubevirtv1.PersistentVolumeClaimVolumeSource{
				PersistentVolumeClaimVolumeSource: corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
			},
		}}
	}
	secret := &corev1.LocalObjectReference{Name: names.CloudInit}
	return []kubevirtv1.Volume{
		claim(OSDisk, names.OSVolume),
		claim(DataDisk, names.DataVolume),
		{Name: CloudInitDisk, VolumeSource: kubevirtv1.VolumeSource{
			// In JSON the first is "secretRef"; "userDataSecretRef" is pruned.
			CloudInitNoCloud: &kubevirtv1.CloudInitNoCloudSource{
				UserDataSecretRef:    secret,
				NetworkDataSecretRef: secret,
			},
		}},
	}
}
