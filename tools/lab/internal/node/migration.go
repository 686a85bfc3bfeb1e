package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Addresses that the two virt-handlers of a migration would listen on.
const targetAddress = "10.52.0.11"

// migrate plays both virt-handlers of a live migration, one step a round, and then
// what the target does with hotplugged CPU and memory. The guest itself stays.
func (h *virtHandler) migrate(ctx context.Context, vmi *kubevirtv1.VirtualMachineInstance) error {
	m := vmi.Status.MigrationState
	if m == nil || m.TargetNode == "" || m.Completed {
		return nil
	}
	now := metav1.Now()
	switch {
	case m.TargetNodeAddress == "":
		m.TargetNodeAddress = targetAddress
		return nil
	case m.StartTimestamp == nil:
		m.StartTimestamp = &now
		return nil
	}
	m.EndTimestamp, m.Completed, m.TargetNodeDomainDetected, m.TargetNodeDomainReadyTimestamp = &now, true, true, &now
	vmi.Status.NodeName = m.TargetNode
	vmi.Labels[kubevirtv1.NodeNameLabel] = m.TargetNode
	delete(vmi.Labels, kubevirtv1.MigrationTargetNodeNameLabel)
	removeCondition(&vmi.Status, kubevirtv1.VirtualMachineInstanceVCPUChange, kubevirtv1.VirtualMachineInstanceMemoryChange)
	if cpu := vmi.Spec.Domain.CPU; cpu != nil && vmi.Status.CurrentCPUTopology != nil {
		vmi.Status.CurrentCPUTopology.Sockets = cpu.Sockets
	}
	if memory := vmi.Spec.Domain.Memory; memory != nil && memory.Guest != nil && vmi.Status.Memory != nil {
		vmi.Status.Memory.GuestCurrent, vmi.Status.Memory.GuestRequested = memory.Guest, memory.Guest
	}
	return h.leaveSource(ctx, vmi)
}

// leaveSource moves the guest's book-keeping to the target's pod; the source's
// launcher ends by itself after a migration.
func (h *virtHandler) leaveSource(ctx context.Context, vmi *kubevirtv1.VirtualMachineInstance) error {
	m := h.machines.get(vmi.UID)
	target := client.ObjectKey{Namespace: vmi.Namespace, Name: vmi.Status.MigrationState.TargetPod}
	if m == nil || target.Name == "" || m.launcher() == target {
		return nil
	}
	source := new(corev1.Pod)
	if err := h.Get(ctx, m.launcher(), source); err != nil && !apierrors.IsNotFound(err) {
		return err
	} else if err == nil {
		old := source.DeepCopy()
		endPod(source, corev1.PodSucceeded, 0)
		if err := h.Status().Patch(ctx, source, client.StrategicMergeFrom(old)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	m.move(target)
	h.machines.wakePod(target)
	return nil
}
