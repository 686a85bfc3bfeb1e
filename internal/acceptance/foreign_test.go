package acceptance

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// foreign is what administrators, Kube-OVN and Rancher set on a machine.
func foreign() map[string]any {
	return map[string]any{
		"metadata": map[string]any{
			"annotations": map[string]any{"example.com/team": "orders", "field.cattle.io/description": "ask Ann"},
			"labels":      map[string]any{"example.com/cost": "7"},
		},
		"spec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{
				"ovn.kubernetes.io/logical_switch": "tenant-net",
				"example.com/backup":               "nightly",
			}},
			"spec": map[string]any{
				"dnsPolicy":    "None",
				"dnsConfig":    map[string]any{"nameservers": []any{"10.0.0.10"}, "searches": []any{"acme.example"}},
				"nodeSelector": map[string]any{"example.com/disk": "nvme"},
				"affinity": map[string]any{"nodeAffinity": map[string]any{"preferredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{
					"weight": int64(5), "preference": map[string]any{"matchExpressions": []any{map[string]any{"key": "example.com/rack", "operator": "Exists"}}},
				}}}},
			},
		}},
	}
}

// bindManagedTap binds the machine's network as Harvester does on an overlay.
func (l *lab) bindManagedTap(name string) {
	l.t.Helper()
	patch := `[{"op":"remove","path":"/spec/template/spec/domain/devices/interfaces/0/bridge"},
		{"op":"add","path":"/spec/template/spec/domain/devices/interfaces/0/binding","value":{"name":"managedtap"}}]`
	_, err := l.dynamic.Resource(machines()).Namespace(namespace).Patch(l.t.Context(), "pg-"+name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
	must(l.t, err)
}

// others is all of a machine that this provider does not answer for: without
// status, without the API server's counters and without the annotations that
// an update is to change. As bytes, since a value that is written anew may
// mean the same and yet be another's no more.
func (l *lab) others(name string, ours ...string) []byte {
	l.t.Helper()
	object := l.machine(name)
	unstructured.RemoveNestedField(object.Object, "status")
	for _, field := range []string{"resourceVersion", "managedFields", "generation"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	annotations := object.GetAnnotations()
	for _, annotation := range ours {
		delete(annotations, "dbaas.opencloud.wso2.com/"+annotation)
	}
	object.SetAnnotations(annotations)
	text, err := json.MarshalIndent(object.Object, "", "  ")
	must(l.t, err)
	return text
}

// present says which of the foreign values a machine does not have.
func present(object, wanted map[string]any, at string) []string {
	var missing []string
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		inner, isMap := wanted[key].(map[string]any)
		has, hasMap := object[key].(map[string]any)
		switch {
		case isMap && hasMap:
			missing = append(missing, present(has, inner, at+"/"+key)...)
		case !cmp.Equal(object[key], wanted[key]):
			missing = append(missing, at+"/"+key)
		}
	}
	return missing
}

func TestWhatOthersSetStaysAsItIs(t *testing.T) {
	l := useLab(t)
	ours := []string{"deletion-protection", "password-mode"}
	var before []byte
	keep := func(*terraform.State) error {
		if diff := cmp.Diff(string(before), string(l.others("shared", ours...))); diff != "" {
			return fmt.Errorf("the update changed what is not its own:\n%s", diff)
		}
		return nil
	}
	step := func(arguments args) resource.TestStep {
		return resource.TestStep{
			Config: l.config("shared", arguments),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction(it, plancheck.ResourceActionUpdate),
			}},
			Check: keep,
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("shared"),
		Steps: []resource.TestStep{
			{Config: l.config("shared", nil)},
			{
				PreConfig: func() {
					l.patchMachine("shared", foreign())
					l.bindManagedTap("shared")
				},
				Config:   l.config("shared", nil),
				PlanOnly: true,
			},
			{
				PreConfig: func() {
					before = l.others("shared", ours...)
					if missing := present(l.machine("shared").Object, foreign(), ""); len(missing) > 0 {
						t.Errorf("the cluster itself did not keep %v", missing)
					}
					if !strings.Contains(string(before), "managedtap") {
						t.Error("the cluster itself did not keep the binding")
					}
				},
				Config: l.config("shared", nil), PlanOnly: true,
			},
			step(args{"deletion_protection": "true"}),
			step(args{"deletion_protection": "true", "manage_master_user_password": "true"}),
			step(nil),
		},
	})
}

// TestWhatControllersRewriteIsNoChange compares with what was asked for, so
// that it says something: the cluster does rewrite machines.
func TestWhatControllersRewriteIsNoChange(t *testing.T) {
	l := useLab(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("rewritten"),
		Steps: []resource.TestStep{
			{Config: l.config("rewritten", nil)},
			{
				PreConfig: func() {
					l.idle("rewritten")
					spec, _, err := unstructured.NestedMap(l.machine("rewritten").Object, "spec", "template", "spec")
					must(t, err)
					for _, foreign := range []string{"architecture", "domain.firmware", "domain.machine", "domain.resources.requests", "terminationGracePeriodSeconds"} {
						if _, found, err := unstructured.NestedFieldNoCopy(spec, strings.Split(foreign, ".")...); err != nil || !found {
							t.Errorf("nobody has set %s: this story proves nothing any more", foreign)
						}
					}
				},
				Config: l.config("rewritten", nil), PlanOnly: true,
			},
			{
				// Any write of anybody sends the machine through all webhooks again.
				PreConfig: func() {
					l.patchMachine("rewritten", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"example.com/touched": "yes"}}})
					l.idle("rewritten")
				},
				Config: l.config("rewritten", nil), PlanOnly: true,
			},
		},
	})
}

// idle waits until KubeVirt's controller has seen the machine as it is.
func (l *lab) idle(name string) {
	l.t.Helper()
	changes, err := l.dynamic.Resource(machines()).Namespace(namespace).Watch(l.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=pg-" + name})
	must(l.t, err)
	defer changes.Stop()
	for change := range changes.ResultChan() {
		vm, isVM := change.Object.(*unstructured.Unstructured)
		if !isVM {
			l.t.Fatalf("watch: %v", change.Object)
		}
		observed, _, err := unstructured.NestedInt64(vm.Object, "status", "observedGeneration")
		must(l.t, err)
		ready, _, err := unstructured.NestedBool(vm.Object, "status", "ready")
		must(l.t, err)
		if ready && observed == vm.GetGeneration() {
			return
		}
	}
	l.t.Fatal("the watch ended")
}
