package lab_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kubevirt "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/labtest"
)

func listOptions(selector string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: selector}
}

// hold sets a knob until release is called or the test ends: for one object of the
// tenant's namespace, or for the lab if object is empty.
func hold(t *testing.T, lab *labtest.Lab, object, knob, value string) (release func()) {
	t.Helper()
	key := knob
	if object != "" {
		key = labtest.Tenant + "." + object + "." + knob
	}
	release = func() { lab.Run(t, "knob", key+"-") }
	t.Cleanup(release)
	lab.Run(t, "knob", key+"="+value)
	return release
}

func claimCondition(c *corev1.PersistentVolumeClaim, t corev1.PersistentVolumeClaimConditionType) bool {
	return slices.ContainsFunc(c.Status.Conditions, func(x corev1.PersistentVolumeClaimCondition) bool { return x.Type == t })
}

func capacity(c *corev1.PersistentVolumeClaim) string { return c.Status.Capacity.Storage().String() }

func grow(t *testing.T, lab *labtest.Lab, c *corev1.PersistentVolumeClaim, size string) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"resources":{"requests":{"storage":"`+size+`"}}}}`))
	if err := lab.User.Client.Patch(t.Context(), c, patch); err != nil {
		t.Fatalf("grow the claim: %v", err)
	}
}

func TestRestartRequiredStaysUntrue(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	name := labtest.Name(t)
	lab.Knob(t, name, "restart-required", "true")
	m := lab.Create(t, labtest.Machine{Name: name})
	labtest.Wait(t, lab, m.VM(), "RestartRequired on a running machine that nobody changed", func(v *kubevirt.VirtualMachine) bool {
		return v.Status.PrintableStatus == kubevirt.VirtualMachineStatusRunning && slices.ContainsFunc(v.Status.Conditions, func(c kubevirt.VirtualMachineCondition) bool {
			return c.Type == kubevirt.VirtualMachineRestartRequired && c.Status == corev1.ConditionTrue
		})
	})
}

func TestABackupInProgressRefusesAStop(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	name := labtest.Name(t)
	m := lab.Create(t, labtest.Machine{Name: name})
	labtest.Wait(t, lab, m.VMI(), "Running", isRunning)
	backup := labtest.Unstructured("harvesterhci.io/v1beta1", "VirtualMachineBackup", m.Namespace, "lab-"+name)
	release := hold(t, lab, name, "backup", "true")
	labtest.Wait(t, lab, backup, "a backup in progress", func(b *unstructured.Unstructured) bool {
		uid, _, _ := unstructured.NestedString(b.Object, "status", "sourceUID")
		return uid != ""
	})
	if err := runStrategy(t, lab, m, "Halted"); err == nil || !strings.Contains(err.Error(), "there is vmbackup in progress") {
		t.Errorf("the stop was answered with %v", err)
	}
	release()
	lab.WaitGone(t, backup)
	if err := runStrategy(t, lab, m, "Halted"); err != nil {
		t.Errorf("the stop after the backup was answered with %v", err)
	}
}

func TestNoQuotaIsAnnotatedByHarvester(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	name := labtest.Name(t)
	lab.Knob(t, name, "no-quota", "true")
	m := lab.Create(t, labtest.Machine{Name: name})
	vm := labtest.Wait(t, lab, m.VM(), "Harvester's annotation", func(v *kubevirt.VirtualMachine) bool {
		return v.Annotations["harvesterhci.io/insufficient-resource-quota"] != ""
	})
	if got := vm.Annotations["harvesterhci.io/insufficient-resource-quota"]; !strings.Contains(got, "exceeded quota") {
		t.Errorf("the annotation says %q", got)
	}
	if *vm.Spec.RunStrategy != kubevirt.RunStrategyHalted {
		t.Errorf("Harvester left the machine %s", *vm.Spec.RunStrategy)
	}
}

func TestAClaimStaysPending(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	name := labtest.Name(t)
	release := hold(t, lab, name+"-data", "claim-pending", "insufficient storage on all disks")
	m := lab.Create(t, labtest.Machine{Name: name})
	waitEvent(t, lab, name+"-data", "ProvisioningFailed", "insufficient storage on all disks")
	labtest.Wait(t, lab, m.DataClaim(), "Pending", func(c *corev1.PersistentVolumeClaim) bool { return c.Status.Phase == corev1.ClaimPending })
	release()
	labtest.Wait(t, lab, m.VMI(), "Running once the knob is gone", isRunning)
}

func TestACapacityThatNeverGrows(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	name := labtest.Name(t)
	m := lab.Create(t, labtest.Machine{Name: name})
	labtest.Wait(t, lab, m.VMI(), "Running", isRunning)
	release := hold(t, lab, name+"-data", "claim-frozen", "true")
	grow(t, lab, m.DataClaim(), "3Gi")
	c := labtest.Wait(t, lab, m.DataClaim(), "Resizing", func(c *corev1.PersistentVolumeClaim) bool {
		return claimCondition(c, corev1.PersistentVolumeClaimResizing)
	})
	if capacity(c) != "2Gi" {
		t.Errorf("the capacity is %s", capacity(c))
	}
	release()
	labtest.Wait(t, lab, m.DataClaim(), "3Gi once the knob is gone", func(c *corev1.PersistentVolumeClaim) bool { return capacity(c) == "3Gi" })
}

func TestAClaimThatGrowsOnlyOffline(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	name := labtest.Name(t)
	m := lab.Create(t, labtest.Machine{Name: name})
	labtest.Wait(t, lab, m.VMI(), "Running", isRunning)
	lab.Knob(t, name+"-data", "grow-offline", "true")
	grow(t, lab, m.DataClaim(), "3Gi")
	waitEvent(t, lab, name+"-data", "VolumeResizeFailed", "offline expansion is required")
	if err := runStrategy(t, lab, m, "Halted"); err != nil {
		t.Fatal(err)
	}
	lab.WaitGone(t, m.VMI())
	c := labtest.Wait(t, lab, m.DataClaim(), "FileSystemResizePending", func(c *corev1.PersistentVolumeClaim) bool {
		return claimCondition(c, corev1.PersistentVolumeClaimFileSystemResizePending)
	})
	if capacity(c) != "2Gi" {
		t.Errorf("the capacity is %s before a node has the volume", capacity(c))
	}
	if err := runStrategy(t, lab, m, "Always"); err != nil {
		t.Fatal(err)
	}
	labtest.Wait(t, lab, m.DataClaim(), "3Gi", func(c *corev1.PersistentVolumeClaim) bool { return capacity(c) == "3Gi" })
}

func newImage(lab *labtest.Lab, name string) *unstructured.Unstructured {
	o := labtest.Unstructured("harvesterhci.io/v1beta1", "VirtualMachineImage", labtest.Tenant, name)
	o.Object["spec"] = map[string]any{
		"displayName": name, "sourceType": "download", "retry": int64(1),
		"url":                    "http://127.0.0.1:" + itoa(lab.Record.Ports["images"]) + "/" + name + ".qcow2",
		"storageClassParameters": map[string]any{"migratable": "true", "numberOfReplicas": "3", "staleReplicaTimeout": "30"},
	}
	return o
}

func TestAnImageStaysAtSomePercent(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	name := labtest.Name(t)
	image := newImage(lab, name)
	release := hold(t, lab, name, "image-progress", "37")
	if err := lab.Admin.Client.Create(t.Context(), image); err != nil {
		t.Fatal(err)
	}
	labtest.Wait(t, lab, image.DeepCopy(), "37 percent", func(i *unstructured.Unstructured) bool {
		percent, _, _ := unstructured.NestedInt64(i.Object, "status", "progress")
		return percent == 37
	})
	release()
	defer deleteObject(t, lab, image)
	labtest.Wait(t, lab, image.DeepCopy(), "Imported once the knob is gone", func(i *unstructured.Unstructured) bool { return imageCondition(i, "Imported") == "True" })
}

func TestHarvesterGivesAnImageUp(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	name := labtest.Name(t)
	image := newImage(lab, name)
	lab.Knob(t, name, "image-fails", "checksum mismatch")
	if err := lab.Admin.Client.Create(t.Context(), image); err != nil {
		t.Fatal(err)
	}
	defer deleteObject(t, lab, image)
	labtest.Wait(t, lab, image.DeepCopy(), "RetryLimitExceeded", func(i *unstructured.Unstructured) bool {
		return imageCondition(i, "RetryLimitExceeded") == "True"
	})
}

func imageCondition(i *unstructured.Unstructured, t string) string {
	list, _, _ := unstructured.NestedSlice(i.Object, "status", "conditions")
	for _, x := range list {
		if c, ok := x.(map[string]any); ok && c["type"] == t {
			s, _ := c["status"].(string)
			return s
		}
	}
	return ""
}

func deleteObject(t *testing.T, lab *labtest.Lab, o client.Object) {
	t.Helper()
	if err := client.IgnoreNotFound(lab.Admin.Client.Delete(t.Context(), o)); err != nil {
		t.Error(err)
	}
	lab.WaitGone(t, o)
}
