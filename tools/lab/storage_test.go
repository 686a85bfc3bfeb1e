package lab_test

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubevirt "kubevirt.io/api/core/v1"
	cdi "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/labtest"
)

func itoa(n int) string { return strconv.Itoa(n) }

// errStillServes says that what a knob should have changed is as before.
var errStillServes = errors.New("nothing has changed yet")

// eventually repeats what the API server may need a moment for, such as to forget
// a webhook.
func eventually(t *testing.T, try func() error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// runLab runs the lab's command where it is expected to fail.
func runLab(ctx context.Context, lab *labtest.Lab, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, lab.Binary(), append([]string{args[0], "-dir", string(lab.Dir)}, args[1:]...)...).CombinedOutput()
	return string(out), err
}

func TestAGrownVolumeAndItsEnd(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	m := lab.Create(t, labtest.Machine{Name: labtest.Name(t)})
	labtest.Wait(t, lab, m.VMI(), "Running", isRunning)
	grow(t, lab, m.DataClaim(), "5Gi")
	claim := labtest.Wait(t, lab, m.DataClaim(), "5Gi without a restart", func(c *corev1.PersistentVolumeClaim) bool {
		return capacity(c) == "5Gi" && len(c.Status.Conditions) == 0
	})
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
	if err := lab.Admin.Client.Get(t.Context(), client.ObjectKeyFromObject(pv), pv); err != nil {
		t.Fatal(err)
	}
	if got := pv.Spec.Capacity.Storage().String(); got != "5Gi" {
		t.Errorf("the volume's capacity is %s", got)
	}
	labtest.Wait(t, lab, m.VMI(), "the new size", func(v *kubevirt.VirtualMachineInstance) bool {
		for _, s := range v.Status.VolumeStatus {
			if s.Name == "pgdata-disk" && s.PersistentVolumeClaimInfo.Capacity.Storage().String() == "5Gi" {
				return true
			}
		}
		return false
	})
	foreground := client.PropagationPolicy(metav1.DeletePropagationForeground)
	for _, o := range []client.Object{m.VM(), m.DataClaim()} {
		if err := lab.User.Client.Delete(t.Context(), o, foreground); err != nil {
			t.Fatal(err)
		}
		lab.WaitGone(t, o)
	}
	lab.WaitGone(t, pv)
}

func TestADiskFromAnImageWithTheCDIBackend(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	name := labtest.Name(t)
	image := labtest.Wait(t, lab, labtest.Unstructured("harvesterhci.io/v1beta1", "VirtualMachineImage", "default", "debian-12-cdi"), "Imported",
		func(i *unstructured.Unstructured) bool { return imageCondition(i, "Imported") == "True" })
	class, _, _ := unstructured.NestedString(image.Object, "spec", "targetStorageClassName")
	m := labtest.Machine{Name: name}
	vm := m.Object(t, lab)
	m.Namespace = labtest.Tenant
	var claims []map[string]any
	if err := json.Unmarshal([]byte(vm.Annotations["harvesterhci.io/volumeClaimTemplates"]), &claims); err != nil {
		t.Fatal(err)
	}
	claims[0]["metadata"].(map[string]any)["annotations"] = map[string]string{"harvesterhci.io/imageId": "default/debian-12-cdi"}
	claims[0]["spec"].(map[string]any)["storageClassName"] = class
	templates, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	vm.Annotations["harvesterhci.io/volumeClaimTemplates"] = string(templates)
	secret := m.Secret()
	secret.StringData = map[string]string{"userdata": "#cloud-config\n{}\n", "networkdata": "version: 2\n"}
	for _, o := range []client.Object{secret, vm} {
		if err := lab.User.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	defer removeImageMachine(t, lab, m)
	dv := &cdi.DataVolume{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.RootClaim().Name}}
	labtest.Wait(t, lab, dv.DeepCopy(), "success", func(d *cdi.DataVolume) bool { return d.Status.Phase == cdi.Succeeded })
	labtest.Wait(t, lab, m.VMI(), "Running", isRunning)
	root := labtest.Wait(t, lab, m.RootClaim(), "Bound", func(c *corev1.PersistentVolumeClaim) bool { return c.Status.Phase == corev1.ClaimBound })
	if owner := metav1.GetControllerOf(root); owner == nil || owner.Kind != "DataVolume" {
		t.Errorf("the root claim belongs to %v", owner)
	}
	profile := &cdi.StorageProfile{ObjectMeta: metav1.ObjectMeta{Name: class}}
	if err := lab.User.Client.Get(t.Context(), client.ObjectKeyFromObject(profile), profile); err != nil {
		t.Fatal(err)
	}
	if got := profile.Status.ClaimPropertySets; len(got) == 0 || got[0].AccessModes[0] != root.Spec.AccessModes[0] {
		t.Errorf("the claim has %v, the profile %v", root.Spec.AccessModes, got)
	}
}

func removeImageMachine(t *testing.T, lab *labtest.Lab, m labtest.Machine) {
	t.Helper()
	dv := &cdi.DataVolume{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.RootClaim().Name}}
	for _, o := range []client.Object{m.VM(), dv, m.DataClaim(), m.Secret()} {
		deleteObject(t, lab, o)
	}
}

func TestAMachineMigrates(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	m := lab.Create(t, labtest.Machine{Name: labtest.Name(t), Probe: readyProbe})
	// Ready may be reported before the address is.
	before := labtest.Wait(t, lab, m.VMI(), "Ready with an address", func(v *kubevirt.VirtualMachineInstance) bool {
		return readyNow(v) && addressOf(v) != ""
	})
	migration := &kubevirt.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}
	migration.Spec.VMIName = m.Name
	if err := lab.Admin.Client.Create(t.Context(), migration); err != nil {
		t.Fatal(err)
	}
	labtest.Wait(t, lab, migration.DeepCopy(), "success", func(x *kubevirt.VirtualMachineInstanceMigration) bool {
		return x.Status.Phase == kubevirt.MigrationSucceeded
	})
	after := labtest.Wait(t, lab, m.VMI(), "Ready on the other node", func(v *kubevirt.VirtualMachineInstance) bool {
		return v.Status.NodeName != before.Status.NodeName && readyNow(v)
	})
	if after.UID != before.UID || addressOf(after) != addressOf(before) {
		t.Errorf("the migration changed the machine: %+v", after.Status)
	}
}
