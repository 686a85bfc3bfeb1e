package node

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
)

// describeMachine fills in the status of a running machine, as virt-handler's
// updateVMIStatusFromDomain and updateVMIConditions do.
func describeMachine(vmi *kubevirtv1.VirtualMachineInstance, s guest.Spec, r report, reverse bool) {
	st := &vmi.Status
	st.SelinuxContext = "none" // an empty one stops every migration
	st.Interfaces = interfaceStatus(s.NICs, r, st.Interfaces, reverse)
	if r.os != nil {
		st.GuestOSInfo = kubevirtv1.VirtualMachineInstanceGuestOSInfo{
			Name: r.os["NAME"], ID: r.os["ID"], Version: r.os["VERSION"], VersionID: r.os["VERSION_ID"], PrettyName: r.os["PRETTY_NAME"], Machine: "x86_64",
		}
	}
	if m := vmi.Spec.Domain.Machine; m != nil {
		st.Machine = &kubevirtv1.Machine{Type: m.Type}
	}
	describeVolumes(vmi)
	setCondition(st, kubevirtv1.VirtualMachineInstanceIsStorageLiveMigratable, corev1.ConditionTrue, "", "")
	if claim := singleWriter(vmi); claim != "" {
		setCondition(st, kubevirtv1.VirtualMachineInstanceIsMigratable, corev1.ConditionFalse, kubevirtv1.VirtualMachineInstanceReasonDisksNotMigratable,
			fmt.Sprintf("cannot migrate VMI: PVC %s is not shared, live migration requires that all PVCs must be shared (using ReadWriteMany access mode)", claim))
		st.MigrationMethod = kubevirtv1.BlockMigration
	} else {
		setCondition(st, kubevirtv1.VirtualMachineInstanceIsMigratable, corev1.ConditionTrue, "", "")
		st.MigrationMethod = kubevirtv1.LiveMigration
	}
	if r.connected {
		setCondition(st, kubevirtv1.VirtualMachineInstanceAgentConnected, corev1.ConditionTrue, "", "")
	} else {
		removeCondition(st, kubevirtv1.VirtualMachineInstanceAgentConnected)
	}
}

// describeVolumes names the device of every disk and sorts the volumes by name.
func describeVolumes(vmi *kubevirtv1.VirtualMachineInstance) {
	device := map[string]string{}
	count := map[string]int{}
	for _, d := range vmi.Spec.Domain.Devices.Disks {
		prefix := "sd"
		if d.Disk != nil && d.Disk.Bus == kubevirtv1.DiskBusVirtio {
			prefix = "vd"
		}
		device[d.Name] = prefix + string(rune('a'+count[prefix]))
		count[prefix]++
	}
	for i := range vmi.Status.VolumeStatus {
		v := &vmi.Status.VolumeStatus[i]
		v.Target = device[v.Name]
		if v.PersistentVolumeClaimInfo == nil && v.HotplugVolume == nil && isCloudInit(vmi, v.Name) {
			v.Size = 1 << 20
		}
	}
	slices.SortStableFunc(vmi.Status.VolumeStatus, func(a, b kubevirtv1.VolumeStatus) int { return strings.Compare(a.Name, b.Name) })
}

func isCloudInit(vmi *kubevirtv1.VirtualMachineInstance, volume string) bool {
	return slices.ContainsFunc(vmi.Spec.Volumes, func(v kubevirtv1.Volume) bool {
		return v.Name == volume && (v.CloudInitNoCloud != nil || v.CloudInitConfigDrive != nil)
	})
}

// singleWriter is a claim of the machine that only one node can use.
func singleWriter(vmi *kubevirtv1.VirtualMachineInstance) string {
	for _, v := range vmi.Status.VolumeStatus {
		if c := v.PersistentVolumeClaimInfo; c != nil && !slices.Contains(c.AccessModes, corev1.ReadWriteMany) {
			return c.ClaimName
		}
	}
	return ""
}

func setCondition(st *kubevirtv1.VirtualMachineInstanceStatus, t kubevirtv1.VirtualMachineInstanceConditionType, status corev1.ConditionStatus, reason, message string) {
	c := kubevirtv1.VirtualMachineInstanceCondition{Type: t, Status: status, Reason: reason, Message: message, LastProbeTime: metav1.Now(), LastTransitionTime: metav1.Now()}
	for i, old := range st.Conditions {
		if old.Type == t {
			if old.Status != status || old.Reason != reason || old.Message != message {
				st.Conditions[i] = c
			}
			return
		}
	}
	st.Conditions = append(st.Conditions, c)
}

func removeCondition(st *kubevirtv1.VirtualMachineInstanceStatus, types ...kubevirtv1.VirtualMachineInstanceConditionType) {
	st.Conditions = slices.DeleteFunc(st.Conditions, func(c kubevirtv1.VirtualMachineInstanceCondition) bool { return slices.Contains(types, c.Type) })
}

// notePhase keeps the time of each phase's first beginning.
func notePhase(old, vmi *kubevirtv1.VirtualMachineInstance) {
	if old.Status.Phase == vmi.Status.Phase {
		return
	}
	for _, p := range vmi.Status.PhaseTransitionTimestamps {
		if p.Phase == vmi.Status.Phase {
			return
		}
	}
	vmi.Status.PhaseTransitionTimestamps = append(vmi.Status.PhaseTransitionTimestamps,
		kubevirtv1.VirtualMachineInstancePhaseTransitionTimestamp{Phase: vmi.Status.Phase, PhaseTransitionTimestamp: metav1.Now()})
}
