package node

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
)

// guestSpec says what to boot for a machine; volumes are the names of the
// PersistentVolumes by claim.
func guestSpec(vmi *kubevirtv1.VirtualMachineInstance, volumes map[string]string, seed *guest.Seed, l *leases) guest.Spec {
	s := guest.Spec{
		Namespace: vmi.Namespace, Name: vmi.Name, UID: string(vmi.UID),
		VCPU: vcpus(vmi), MemoryMiB: memoryMiB(vmi), Seed: seed,
	}
	claims := map[string]string{}
	for _, v := range vmi.Spec.Volumes {
		claims[v.Name] = claimName(v)
	}
	root := rootDisk(vmi)
	for _, d := range vmi.Spec.Domain.Devices.Disks {
		if claims[d.Name] != "" {
			s.Disks = append(s.Disks, guest.Disk{Name: d.Name, Serial: d.Serial, Volume: volumes[claims[d.Name]], Boot: d.Name == root})
		}
	}
	for _, i := range vmi.Spec.Domain.Devices.Interfaces {
		mac := strings.ToLower(strings.ReplaceAll(i.MacAddress, "-", ":"))
		if mac == "" { // else the CNI plugin would draw one
			mac = macFrom(string(vmi.UID) + i.Name)
		}
		s.NICs = append(s.NICs, guest.NIC{Name: i.Name, MAC: mac, Address: l.of(mac)})
	}
	return s
}

// rootDisk is the disk with the lowest boot order, else the first one.
func rootDisk(vmi *kubevirtv1.VirtualMachineInstance) string {
	name, lowest := "", ^uint(0)
	for i, d := range vmi.Spec.Domain.Devices.Disks {
		if i == 0 {
			name = d.Name
		}
		if d.BootOrder != nil && *d.BootOrder < lowest {
			name, lowest = d.Name, *d.BootOrder
		}
	}
	return name
}

func claimName(v kubevirtv1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.DataVolume != nil:
		return v.DataVolume.Name
	}
	return ""
}

func claimNames(vmi *kubevirtv1.VirtualMachineInstance) []string {
	var out []string
	for _, v := range vmi.Spec.Volumes {
		if n := claimName(v); n != "" {
			out = append(out, n)
		}
	}
	return out
}

func vcpus(vmi *kubevirtv1.VirtualMachineInstance) int {
	c := vmi.Spec.Domain.CPU
	if c == nil {
		return 1
	}
	return int(max(c.Cores, 1) * max(c.Sockets, 1) * max(c.Threads, 1))
}

func memoryMiB(vmi *kubevirtv1.VirtualMachineInstance) int {
	if m := vmi.Spec.Domain.Memory; m != nil && m.Guest != nil {
		return int(m.Guest.Value() >> 20)
	}
	return int(vmi.Spec.Domain.Resources.Requests.Memory().Value() >> 20)
}

// secretSource reads a key of a Secret of the machine's namespace.
type secretSource func(secret string, keys ...string) ([]byte, error)

// readSeed resolves the machine's NoCloud data as virt-launcher does when it
// starts: a Secret's keys outrank inline data, instance-id is the firmware's UUID,
// and the host name is the machine's unless the spec says another (KubeVirt 1.7,
// pkg/cloud-init). It is nil for a machine without such data.
func readSeed(vmi *kubevirtv1.VirtualMachineInstance, secret secretSource) (*guest.Seed, error) {
	i := slices.IndexFunc(vmi.Spec.Volumes, func(v kubevirtv1.Volume) bool { return v.CloudInitNoCloud != nil })
	if i < 0 {
		return nil, nil
	}
	from := vmi.Spec.Volumes[i].CloudInitNoCloud
	s := &guest.Seed{Hostname: vmi.Spec.Hostname, UserData: []byte(from.UserData), NetworkData: []byte(from.NetworkData)}
	if s.Hostname == "" {
		s.Hostname, _, _ = strings.Cut(vmi.Name, ".")
	}
	if vmi.Spec.Domain.Firmware != nil {
		s.InstanceID = string(vmi.Spec.Domain.Firmware.UUID)
	}
	for _, part := range []struct {
		ref    *corev1.LocalObjectReference
		keys   []string
		inline string
		to     *[]byte
	}{
		{from.UserDataSecretRef, []string{"userdata", "userData"}, from.UserDataBase64, &s.UserData},
		{from.NetworkDataSecretRef, []string{"networkdata", "networkData"}, from.NetworkDataBase64, &s.NetworkData},
	} {
		if part.ref == nil {
			if part.inline != "" {
				data, err := base64.StdEncoding.DecodeString(part.inline)
				if err != nil {
					return nil, fmt.Errorf("decode cloud-init data: %w", err)
				}
				*part.to = data
			}
			continue
		}
		data, err := secret(part.ref.Name, part.keys...)
		if err != nil {
			return nil, err
		}
		*part.to = data
	}
	return s, nil
}
