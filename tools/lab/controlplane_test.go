package lab_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirt "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/labtest"
)

func TestTheDefinitionsOfAHarvesterClusterAreServed(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	all, err := clientset.NewForConfig(lab.Admin.Config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := all.ApiextensionsV1().CustomResourceDefinitions().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"virtualmachineimages.harvesterhci.io", "virtualmachinebackups.harvesterhci.io", "settings.harvesterhci.io",
		"virtualmachines.kubevirt.io", "virtualmachineinstances.kubevirt.io",
		"datavolumes.cdi.kubevirt.io", "storageprofiles.cdi.kubevirt.io",
		"backingimages.longhorn.io", "network-attachment-definitions.k8s.cni.cncf.io", "clusternetworks.network.harvesterhci.io",
		"servicemonitors.monitoring.coreos.com", "dbinstances.dbaas.opencloud.wso2.com",
	} {
		if !slices.ContainsFunc(list.Items, func(d extv1.CustomResourceDefinition) bool { return d.Name == want }) {
			t.Errorf("there is no %s", want)
		}
	}
}

// The life of a machine as Harvester's UI makes it, by a user with the rights
// that we document and no others.
func TestAMachineIsCreatedStoppedStartedGrownAndDeleted(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	m := lab.Create(t, labtest.Machine{Name: labtest.Name(t)})

	for _, claim := range []*corev1.PersistentVolumeClaim{m.RootClaim(), m.DataClaim()} {
		labtest.Wait(t, lab, claim, "the phase Bound", func(c *corev1.PersistentVolumeClaim) bool { return c.Status.Phase == corev1.ClaimBound })
	}
	first := labtest.Wait(t, lab, m.VMI(), "an address", hasAddress)
	if name := first.Status.Interfaces[0].Name; name != "data-net" {
		t.Errorf("the interface is named %q, want data-net", name)
	}
	awaitPrinted(t, lab, m, kubevirt.VirtualMachineStatusRunning)

	call(t, lab, m, "stop")
	lab.WaitGone(t, m.VMI())
	awaitPrinted(t, lab, m, kubevirt.VirtualMachineStatusStopped)
	call(t, lab, m, "start")
	second := labtest.Wait(t, lab, m.VMI(), "an address after the start", hasAddress)
	if second.UID == first.UID {
		t.Error("after stop and start the instance is the old one")
	}
	call(t, lab, m, "restart")
	labtest.Wait(t, lab, m.VMI(), "an address after the restart", func(i *kubevirt.VirtualMachineInstance) bool {
		return i.UID != second.UID && hasAddress(i)
	})

	growDataDisk(t, lab, m, "5Gi")
	labtest.Wait(t, lab, m.DataClaim(), "a capacity of 5Gi", func(c *corev1.PersistentVolumeClaim) bool {
		return c.Status.Capacity.Storage().Equal(resource.MustParse("5Gi"))
	})

	if err := lab.User.Client.Delete(t.Context(), m.VM(), client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	lab.WaitGone(t, m.VM())
	lab.WaitGone(t, m.VMI())
	for _, claim := range []client.Object{m.RootClaim(), m.DataClaim()} {
		if err := lab.User.Client.Delete(t.Context(), claim); err != nil {
			t.Fatalf("delete the claim of a deleted machine: %v", err)
		}
		lab.WaitGone(t, claim)
	}
}

func TestHarvestersWebhooksRefuse(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	m := lab.Create(t, labtest.Machine{Name: labtest.Name(t)})
	labtest.Wait(t, lab, m.VMI(), "the phase Running", func(i *kubevirt.VirtualMachineInstance) bool { return i.Status.Phase == kubevirt.Running })

	// create tries a second machine that differs in one thing.
	create := func(change func(*kubevirt.VirtualMachine)) error {
		other := labtest.Machine{Name: m.Name + "-2", Halted: true}
		vm := other.Object(t, lab)
		change(vm)
		return lab.User.Client.Create(t.Context(), vm, client.DryRunAll)
	}
	for _, try := range []struct {
		what, says string
		err        func() error
	}{
		{"a smaller disk", "can't be less than previous value", func() error {
			return patchTemplates(t, lab, m, `"storage":"2Gi"`, `"storage":"1Gi"`)
		}},
		{"an annotation that is not JSON", "the volumeClaimTemplates annotaion is invalid", func() error {
			return create(func(vm *kubevirt.VirtualMachine) { vm.Annotations["harvesterhci.io/volumeClaimTemplates"] = "[{" })
		}},
		{"the MAC address of another machine", "duplicate mac address", func() error {
			return create(func(vm *kubevirt.VirtualMachine) {
				vm.Spec.Template.Spec.Domain.Devices.Interfaces[0].MacAddress = m.MAC
			})
		}},
		{"a disk without a volume", "no-such-volume", func() error {
			return create(func(vm *kubevirt.VirtualMachine) {
				vm.Spec.Template.Spec.Domain.Devices.Disks[1].Name = "no-such-volume"
			})
		}},
		{"deleting the claim of a machine", "can not delete", func() error {
			return lab.User.Client.Delete(t.Context(), m.DataClaim())
		}},
		{"deleting an image with a disk from it", "being used by volume", func() error {
			return lab.Admin.Client.Delete(t.Context(), labtest.Unstructured("harvesterhci.io/v1beta1", "VirtualMachineImage", "default", "debian-12"))
		}},
		{"a second image of one display name", "A resource with the same name exists", func() error {
			image := labtest.Unstructured("harvesterhci.io/v1beta1", "VirtualMachineImage", "default", "third")
			image.SetLabels(map[string]string{"harvesterhci.io/imageDisplayName": "twice.qcow2"})
			image.Object["spec"] = map[string]any{"displayName": "twice.qcow2", "sourceType": "download", "url": "http://127.0.0.1/", "retry": int64(3)}
			return lab.Admin.Client.Create(t.Context(), image)
		}},
	} {
		t.Run(try.what, func(t *testing.T) {
			err := try.err()
			if err == nil {
				t.Fatal("it was accepted")
			}
			if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(try.says)) {
				t.Errorf("the refusal does not say %q: %v", try.says, err)
			}
		})
	}
}

func TestTheTenantMayDoOnlyWhatIsDocumented(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	ctx := t.Context()
	if _, err := lab.User.Kube.CoreV1().Secrets(labtest.Tenant).Get(ctx, "none", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get a Secret of the own namespace: %v, want not found", err)
	}
	if _, err := lab.User.Kube.StorageV1().StorageClasses().Get(ctx, "longhorn", metav1.GetOptions{}); err != nil {
		t.Errorf("get a storage class: %v", err)
	}
	if _, err := lab.User.Kube.CoreV1().Secrets(labtest.Tenant).List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list Secrets: %v, want forbidden", err)
	}
	if _, err := lab.User.Kube.CoreV1().Secrets("default").Get(ctx, "none", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("get a Secret of another namespace: %v, want forbidden", err)
	}
	if _, err := lab.User.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list nodes: %v, want forbidden", err)
	}
}

// A Service without selector gets its slice from its Endpoints, by Kubernetes.
func TestEndpointsAreMirroredIntoASlice(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	name := labtest.Name(t)
	meta := metav1.ObjectMeta{Namespace: labtest.Tenant, Name: name}
	port := []corev1.EndpointPort{{Name: "metrics", Port: 9187}}
	objects := []client.Object{
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Name: "metrics", Port: 9187}}}},
		//nolint:staticcheck // the provider writes Endpoints, which Prometheus' operator reads
		&corev1.Endpoints{ObjectMeta: meta, Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "192.0.2.7"}}, Ports: port}}},
	}
	for _, o := range objects {
		if err := lab.User.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := lab.Admin.Client.Delete(context.WithoutCancel(t.Context()), o); err != nil {
				t.Error(err)
			}
		})
	}
	slices, err := lab.Admin.Kube.DiscoveryV1().EndpointSlices(labtest.Tenant).Watch(t.Context(), metav1.ListOptions{LabelSelector: discovery.LabelServiceName + "=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer slices.Stop()
	event := <-slices.ResultChan()
	slice, ok := event.Object.(*discovery.EndpointSlice)
	if !ok || len(slice.Endpoints) != 1 {
		t.Fatalf("the first event is %v, want a slice with one endpoint", event)
	}
	if got := slice.Endpoints[0].Addresses[0]; got != "192.0.2.7" {
		t.Errorf("the slice's address is %s, want 192.0.2.7", got)
	}
}

func hasAddress(i *kubevirt.VirtualMachineInstance) bool {
	return i.Status.Phase == kubevirt.Running && len(i.Status.Interfaces) > 0 && i.Status.Interfaces[0].IP != ""
}

func awaitPrinted(t *testing.T, lab *labtest.Lab, m labtest.Machine, want kubevirt.VirtualMachinePrintableStatus) {
	t.Helper()
	labtest.Wait(t, lab, m.VM(), "the status "+string(want), func(vm *kubevirt.VirtualMachine) bool { return vm.Status.PrintableStatus == want })
}

// call uses a subresource of KubeVirt's aggregated API, as Harvester's UI does.
func call(t *testing.T, lab *labtest.Lab, m labtest.Machine, what string) {
	t.Helper()
	path := "/apis/subresources.kubevirt.io/v1/namespaces/" + m.Namespace + "/virtualmachines/" + m.Name + "/" + what
	if err := lab.Admin.Kube.CoreV1().RESTClient().Put().AbsPath(path).Body([]byte("{}")).Do(t.Context()).Error(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// growDataDisk does what Harvester's UI does: the claim template, then the claim.
func growDataDisk(t *testing.T, lab *labtest.Lab, m labtest.Machine, size string) {
	t.Helper()
	if err := patchTemplates(t, lab, m, `"storage":"2Gi"`, `"storage":"`+size+`"`); err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"resources":{"requests":{"storage":"`+size+`"}}}}`))
	if err := lab.User.Client.Patch(t.Context(), m.DataClaim(), patch); err != nil {
		t.Fatal(err)
	}
}

func patchTemplates(t *testing.T, lab *labtest.Lab, m labtest.Machine, from, to string) error {
	t.Helper()
	vm := m.VM()
	if err := lab.User.Client.Get(t.Context(), client.ObjectKeyFromObject(vm), vm); err != nil {
		t.Fatal(err)
	}
	before := vm.DeepCopy()
	const templates = "harvesterhci.io/volumeClaimTemplates"
	vm.Annotations[templates] = strings.Replace(vm.Annotations[templates], from, to, 1)
	if vm.Annotations[templates] == before.Annotations[templates] {
		t.Fatalf("the claim templates hold no %s: %s", from, before.Annotations[templates])
	}
	return lab.User.Client.Patch(t.Context(), vm, client.MergeFrom(before))
}
