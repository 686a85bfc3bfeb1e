package node

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
)

// database is a machine with a root disk, a data disk and cloud-init data.
func database() *kubevirtv1.VirtualMachineInstance {
	claim := func(name string) kubevirtv1.VolumeSource {
		return kubevirtv1.VolumeSource{PersistentVolumeClaim: &kubevirtv1.PersistentVolumeClaimVolumeSource{
			PersistentVolumeClaimVolumeSource: corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}}
	}
	virtio := kubevirtv1.DiskDevice{Disk: &kubevirtv1.DiskTarget{Bus: kubevirtv1.DiskBusVirtio}}
	secret := &corev1.LocalObjectReference{Name: "pg-a-cloudinit"}
	vmi := &kubevirtv1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "pg-a", UID: "u1"}}
	vmi.Spec = kubevirtv1.VirtualMachineInstanceSpec{
		Domain: kubevirtv1.DomainSpec{
			CPU:      &kubevirtv1.CPU{Cores: 2, Sockets: 1, Threads: 1},
			Memory:   &kubevirtv1.Memory{Guest: new(resource.MustParse("3996Mi"))},
			Firmware: &kubevirtv1.Firmware{UUID: "f1"},
			Devices: kubevirtv1.Devices{
				Disks: []kubevirtv1.Disk{
					{Name: "pgdata-disk", Serial: "pgdata", DiskDevice: virtio},
					{Name: "os-disk", BootOrder: new(uint(1)), DiskDevice: virtio},
					{Name: "cloudinit", DiskDevice: virtio},
				},
				Interfaces: []kubevirtv1.Interface{{Name: "data-net", MacAddress: "02-5B-9F-00-11-22"}},
			},
		},
		Volumes: []kubevirtv1.Volume{
			{Name: "os-disk", VolumeSource: claim("pg-a-os")},
			{Name: "pgdata-disk", VolumeSource: claim("pg-a-data")},
			{Name: "cloudinit", VolumeSource: kubevirtv1.VolumeSource{CloudInitNoCloud: &kubevirtv1.CloudInitNoCloudSource{UserDataSecretRef: secret, NetworkDataSecretRef: secret}}},
		},
	}
	return vmi
}

func TestGuestSpec(t *testing.T) {
	l := newLeases(7)
	seed := &guest.Seed{InstanceID: "f1"}
	got := guestSpec(database(), map[string]string{"pg-a-os": "pvc-1", "pg-a-data": "pvc-2"}, seed, l)
	want := guest.Spec{
		Namespace: "tenant-acme", Name: "pg-a", UID: "u1", VCPU: 2, MemoryMiB: 3996,
		Disks: []guest.Disk{{Name: "pgdata-disk", Serial: "pgdata", Volume: "pvc-2"}, {Name: "os-disk", Volume: "pvc-1", Boot: true}},
		NICs:  []guest.NIC{{Name: "data-net", MAC: "02:5b:9f:00:11:22", Address: l.of("02:5b:9f:00:11:22")}},
		Seed:  seed,
	}
	if d := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); d != "" {
		t.Error(d)
	}
}

func TestSeedComesFromTheSecret(t *testing.T) {
	vmi := database()
	data := map[string][]byte{"userdata": []byte("#cloud-config\n"), "networkData": []byte("version: 2\n")}
	secret := func(name string, keys ...string) ([]byte, error) {
		for _, k := range keys {
			if d, ok := data[k]; ok && name == "pg-a-cloudinit" {
				return d, nil
			}
		}
		return nil, errors.New("no such key")
	}
	got, err := readSeed(vmi, secret)
	want := &guest.Seed{InstanceID: "f1", Hostname: "pg-a", UserData: []byte("#cloud-config\n"), NetworkData: []byte("version: 2\n")}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(d, err)
	}
	delete(data, "userdata")
	if _, err := readSeed(vmi, secret); err == nil {
		t.Error("a Secret without user data was taken")
	}
	inline := database()
	inline.Spec.Hostname = "other"
	inline.Spec.Volumes[2].CloudInitNoCloud = &kubevirtv1.CloudInitNoCloudSource{UserDataBase64: "I2Nsb3VkLWNvbmZpZwo=", NetworkData: "version: 1\n"}
	got, err = readSeed(inline, secret)
	want = &guest.Seed{InstanceID: "f1", Hostname: "other", UserData: []byte("#cloud-config\n"), NetworkData: []byte("version: 1\n")}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(d, err)
	}
}

func TestLeasesAreDistinctAndStay(t *testing.T) {
	l, seen := newLeases(3), map[netip.Addr]string{}
	subnet := netip.MustParsePrefix("198.18.3.0/24")
	for i := range 200 {
		mac := macFrom(string(rune(i)))
		a := l.of(mac)
		if other, ok := seen[a]; ok {
			t.Fatalf("%s and %s both have %s", mac, other, a)
		}
		if !subnet.Contains(a) || a.As4()[3] < firstHost {
			t.Fatalf("%s has %s", mac, a)
		}
		seen[a] = mac
	}
	for a, mac := range seen {
		if l.of(mac) != a {
			t.Errorf("%s moved from %s to %s", mac, a, l.of(mac))
		}
	}
	l.set("02:00", netip.MustParseAddr("198.18.3.77"))
	if got := l.of("02:00"); got != netip.MustParseAddr("198.18.3.77") {
		t.Errorf("a lease that was set is %s", got)
	}
}
