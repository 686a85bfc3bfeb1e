package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-testing/terraform"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func machines() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
}

func monitors() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "servicemonitors"}
}

// kinds are those of which an instance may have objects.
func kinds() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		machines(),
		{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"},
		{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"},
		{Version: "v1", Resource: "persistentvolumeclaims"},
		{Version: "v1", Resource: "secrets"},
		{Version: "v1", Resource: "services"},
		{Version: "v1", Resource: "endpoints"},
		{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
		monitors(),
	}
}

// remains lists what stands of an instance, by label or by name, in any
// namespace.
func (l *lab) remains(name string) []string {
	l.t.Helper()
	var found []string
	for _, kind := range kinds() {
		list, err := l.dynamic.Resource(kind).List(context.Background(), metav1.ListOptions{})
		must(l.t, err)
		for _, object := range list.Items {
			named := object.GetName() == "pg-"+name || strings.HasPrefix(object.GetName(), "pg-"+name+"-")
			if named || object.GetLabels()["dbaas.opencloud.wso2.com/instance"] == name {
				found = append(found, kind.Resource+" "+object.GetNamespace()+"/"+object.GetName())
			}
		}
	}
	slices.Sort(found)
	return found
}

// nothingLeft is the check after every story: the instances are gone, and what
// was there before them is not.
func (l *lab) nothingLeft(names ...string) func(*terraform.State) error {
	return func(*terraform.State) error {
		for _, name := range names {
			if left := l.remains(name); len(left) > 0 {
				return fmt.Errorf("instance %s left %s", name, strings.Join(left, ", "))
			}
		}
		for place, kind := range map[string]schema.GroupVersionResource{
			"/" + namespace:      {Version: "v1", Resource: "namespaces"},
			"default/vm-net-100": {Group: "k8s.cni.cncf.io", Version: "v1", Resource: "network-attachment-definitions"},
			"default/debian-12":  {Group: "harvesterhci.io", Version: "v1beta1", Resource: "virtualmachineimages"},
			"/longhorn":          {Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"},
		} {
			in, name, _ := strings.Cut(place, "/")
			if _, err := l.dynamic.Resource(kind).Namespace(in).Get(context.Background(), name, metav1.GetOptions{}); err != nil {
				return fmt.Errorf("%s %s is not what it was: %w", kind.Resource, place, err)
			}
		}
		return nil
	}
}

// credentials is the Secret of an instance; nil if there is none.
func (l *lab) credentials(name string) *corev1.Secret {
	l.t.Helper()
	return l.secret("pg-" + name + "-credentials")
}

// secret is one of the namespace; nil if there is none.
func (l *lab) secret(name string) *corev1.Secret {
	l.t.Helper()
	secret, err := l.kube.CoreV1().Secrets(namespace).Get(context.Background(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(l.t, err)
	return secret
}

// machine is the VM of an instance; nil if there is none.
func (l *lab) machine(name string) *unstructured.Unstructured {
	l.t.Helper()
	vm, err := l.dynamic.Resource(machines()).Namespace(namespace).Get(context.Background(), "pg-"+name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(l.t, err)
	return vm
}

// patchMachine changes the VM as somebody else.
func (l *lab) patchMachine(name string, patch map[string]any) {
	l.t.Helper()
	body, err := json.Marshal(patch)
	must(l.t, err)
	_, err = l.dynamic.Resource(machines()).Namespace(namespace).Patch(context.Background(), "pg-"+name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "somebody"})
	must(l.t, err)
}

// removeSecrets is for stories that end with Secrets and no state.
func (l *lab) removeSecrets(name string) {
	l.t.Helper()
	for _, secret := range []string{"pg-" + name + "-credentials", "pg-" + name + "-cloudinit"} {
		err := l.kube.CoreV1().Secrets(namespace).Delete(context.Background(), secret, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			l.t.Error(err)
		}
	}
}

// knob makes the lab's node agent misbehave for one object, or, with an empty
// value, stop doing so.
func (l *lab) knob(name, value string) {
	l.t.Helper()
	var wanted any
	if value != "" {
		wanted = value
	}
	body, err := json.Marshal(map[string]any{"data": map[string]any{name: wanted}})
	must(l.t, err)
	_, err = l.kube.CoreV1().ConfigMaps("lab-system").Patch(context.Background(), "lab-knobs", types.MergePatchType, body, metav1.PatchOptions{})
	must(l.t, err)
}
