package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// several is a root module with instances of the given names, in the order
// given: they share network and image.
func (l *lab) several(names ...string) string {
	return fmt.Sprintf(`provider "dbaas" {
  config_path = %q
}

resource "dbaas_instance" "each" {
  for_each          = toset(%s)
  name              = each.key
  namespace         = %q
  instance_class    = "db.t3.micro"
  allocated_storage = 1
  network_ref       = "default/vm-net-100"
  engine_version    = "15"
  os_image          = "default/debian-12"
}
`, l.kubeconfig, jsonOf(names), namespace)
}

func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// One instance's name begins with the other's, and one's VM is called as the
// other's OS disk: destroying one leaves every object of the other.
func TestNeighboursOfLikeNamesAreLeftAlone(t *testing.T) {
	l := useLab(t)
	apply := []string{"apply", "-auto-approve", "-input=false", "-no-color"}
	c := newCLI(t, required+l.several("next", "next-os"))
	for gone, kept := range map[string]string{"next": "next-os", "next-os": "next"} {
		c.write(required + l.several("next", "next-os"))
		c.must(apply...)
		before := l.uids(kept)
		if len(before) != 6 {
			t.Errorf("of %s stand %v; want VM, VMI, two claims, two Secrets", kept, before)
		}
		c.write(required + l.several(kept))
		c.must(apply...)
		if diff := cmp.Diff(before, l.uids(kept)); diff != "" {
			t.Errorf("objects of %s: %s", kept, diff)
		}
		if left := l.uids(gone); len(left) > 0 {
			t.Errorf("left of %s: %v", gone, left)
		}
	}
	c.must("destroy", "-auto-approve", "-input=false", "-no-color")
	must(t, l.nothingLeft("next", "next-os")(nil))
}

func TestNewInstanceOfAnOldNameIsNew(t *testing.T) {
	l := useLab(t)
	var before map[string]string
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("again"),
		Steps: []resource.TestStep{
			{Config: l.config("again", nil), Check: func(s *terraform.State) error {
				before = s.RootModule().Resources[it].Primary.Attributes
				before["claim"] = l.uids("again")["persistentvolumeclaims pg-again-data"]
				return nil
			}},
			{Config: l.config("again", nil), Destroy: true},
			{Config: l.config("again", nil), Check: func(s *terraform.State) error {
				after := s.RootModule().Resources[it].Primary.Attributes
				after["claim"] = l.uids("again")["persistentvolumeclaims pg-again-data"]
				for _, attribute := range []string{"master_password", "ca_cert_pem", "instance_id", "owner_id", "claim"} {
					if after[attribute] == before[attribute] || after[attribute] == "" {
						return fmt.Errorf("%s is still %q", attribute, after[attribute])
					}
				}
				return nil
			}},
		},
	})
}

// A state of an instance that was destroyed must not destroy the one that has
// its name now.
func TestOldStateDoesNotDestroyANamesake(t *testing.T) {
	l := useLab(t)
	config := l.module("namesake", nil)
	c := newCLI(t, config)
	c.must("apply", "-auto-approve", "-input=false", "-no-color")
	file := filepath.Join(c.dir, "terraform.tfstate")
	old, err := os.ReadFile(file)
	must(t, err)
	c.must("destroy", "-auto-approve", "-input=false", "-no-color")

	current := newCLI(t, config)
	current.must("apply", "-auto-approve", "-input=false", "-no-color")
	before := l.uids("namesake")
	l.reset()
	must(t, os.WriteFile(file, old, 0o600))
	out := c.must("destroy", "-auto-approve", "-input=false", "-no-color", "-refresh=false")
	if !strings.Contains(out, "namesake was left as it stands") {
		t.Errorf("the destroy does not say that it left something: %s", out)
	}
	must(t, os.WriteFile(file, old, 0o600))
	c.must("destroy", "-auto-approve", "-input=false", "-no-color")
	if writes := l.requests("", "POST", "PUT", "PATCH", "DELETE"); len(writes) > 0 {
		t.Errorf("an old state wrote: %v", writes)
	}
	if diff := cmp.Diff(before, l.uids("namesake")); diff != "" {
		t.Error(diff)
	}
	current.must("destroy", "-auto-approve", "-input=false", "-no-color")
	must(t, l.nothingLeft("namesake")(nil))
}

// strangers are objects of somebody else under the names of instance "taken".
func strangers() map[string]struct {
	kind   schema.GroupVersionResource
	object map[string]any
} {
	meta := func(name string) map[string]any {
		return map[string]any{"name": name, "namespace": namespace, "annotations": map[string]any{"example.com/owner": "somebody"}}
	}
	type stranger = struct {
		kind   schema.GroupVersionResource
		object map[string]any
	}
	return map[string]stranger{
		"pg-taken": {machines(), map[string]any{
			"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": meta("pg-taken"),
			"spec": map[string]any{"runStrategy": "Halted", "template": map[string]any{"spec": map[string]any{
				"domain": map[string]any{
					"devices": map[string]any{}, "cpu": map[string]any{"cores": int64(1)},
					"resources": map[string]any{"limits": map[string]any{"cpu": "1", "memory": "512Mi"}},
				},
			}}},
		}},
		"pg-taken-data": {schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, map[string]any{
			"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta("pg-taken-data"),
			"spec": map[string]any{
				"accessModes": []any{"ReadWriteMany"}, "volumeMode": "Block", "storageClassName": "longhorn",
				"resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
			},
		}},
		"pg-taken-credentials": {schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": meta("pg-taken-credentials"),
			"stringData": map[string]any{"admin_user": "app", "admin_password": "theirs"},
		}},
		"pg-taken-cloudinit": {schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": meta("pg-taken-cloudinit"),
			"stringData": map[string]any{"userdata": "#cloud-config\n{}\n"},
		}},
	}
}

func TestObjectsOfStrangersAreNotTouched(t *testing.T) {
	l := useLab(t)
	for name, stranger := range strangers() {
		t.Run(name, func(t *testing.T) {
			objects := l.dynamic.Resource(stranger.kind).Namespace(namespace)
			_, err := objects.Create(t.Context(), &unstructured.Unstructured{Object: stranger.object}, metav1.CreateOptions{})
			must(t, err)
			t.Cleanup(func() {
				err := objects.Delete(context.Background(), name, metav1.DeleteOptions{})
				if err != nil && !apierrors.IsNotFound(err) {
					t.Error(err)
				}
				l.removeSecrets("taken")
				l.gone("taken")
			})
			content := func() map[string]any {
				now, err := objects.Get(t.Context(), name, metav1.GetOptions{})
				must(t, err)
				// Controllers write the status, and Kubernetes notes who wrote what.
				delete(now.Object, "status")
				now.SetManagedFields(nil)
				now.SetFinalizers(nil)
				now.SetResourceVersion("")
				now.SetGeneration(0)
				if notes := now.GetAnnotations(); notes != nil {
					for key := range notes {
						if key != "example.com/owner" {
							delete(notes, key)
						}
					}
					now.SetAnnotations(notes)
				}
				spec, _ := now.Object["spec"].(map[string]any)
				delete(spec, "volumeName")
				return now.Object
			}
			before := content()
			l.reset()
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: factories(),
				Steps:                    []resource.TestStep{{Config: l.config("taken", nil), ExpectError: regexp.MustCompile(regexp.QuoteMeta(name))}},
			})
			if diff := cmp.Diff(before, content()); diff != "" {
				t.Errorf("the stranger's object was changed: %s", diff)
			}
			for _, write := range l.requests(name, "PUT", "PATCH", "DELETE") {
				t.Errorf("%s %s was sent", write.Method, write.Path)
			}
			if len(l.requests("/virtualmachines", "POST")) > 0 {
				t.Error("a virtual machine was posted")
			}
		})
	}
}

// An instance of the DBaaS operator can be imported and read; every change and
// the destroy are refused, and nothing is written.
func TestInstanceOfTheOperatorIsOnlyRead(t *testing.T) {
	l := useLab(t)
	config := l.module("theirs", nil)
	c := newCLI(t, config)
	apply := []string{"apply", "-auto-approve", "-input=false", "-no-color"}
	c.must(apply...)
	creator := func(who string) {
		l.patchMachine("theirs", map[string]any{"metadata": map[string]any{"labels": map[string]any{"harvesterhci.io/creator": who}}})
	}
	creator("dbaas-operator")
	restored := false
	restore := func() {
		if !restored {
			creator("terraform-provider-dbaas")
			restored = true
		}
	}
	t.Cleanup(restore)
	c.must("state", "rm", it)
	c.must("import", "-input=false", "-no-color", it, namespace+"/theirs")
	if reason := c.attributes(it)["status_reason"]; reason != "OperatorManaged" {
		t.Errorf("status_reason %v", reason)
	}
	l.reset()
	for _, arguments := range []args{{"allocated_storage": "20"}, {"instance_class": `"db.t3.small"`}, {"running": "false"}} {
		c.write(l.module("theirs", arguments))
		code, out := c.run(apply...)
		if code == 0 || !strings.Contains(out, "pg_dump") || !strings.Contains(out, "terraform state rm") {
			t.Errorf("%v: exit code %d\n%s", arguments, code, out)
		}
	}
	c.write(config)
	if code, out := c.run("destroy", "-auto-approve", "-input=false", "-no-color"); code == 0 || !strings.Contains(out, "pg_dump") {
		t.Errorf("destroy: exit code %d\n%s", code, out)
	}
	if writes := l.requests("", "POST", "PUT", "PATCH", "DELETE"); len(writes) > 0 {
		t.Errorf("written to the operator's instance: %v", writes)
	}
	restore()
	c.must("destroy", "-auto-approve", "-input=false", "-no-color")
	must(t, l.nothingLeft("theirs")(nil))
}

// The data volume of an instance that served was replaced by a blank one.
func TestReplacedVolumeIsNeverUsed(t *testing.T) {
	l := useLab(t)
	var before map[string]string
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("swapped"),
		Steps: []resource.TestStep{
			{Config: l.config("swapped", args{"running": "false"})},
			{
				PreConfig: func() {
					l.tool("replace-claim", namespace+"/pg-swapped-data")
					before = l.uids("swapped")
					l.reset()
				},
				Config: l.config("swapped", nil), ExpectError: regexp.MustCompile(`the\s+volume\s+with\s+its\s+data\s+is\s+gone`),
			},
			{
				RefreshState: true, ExpectNonEmptyPlan: true,
				RefreshPlanChecks: resource.RefreshPlanChecks{PostRefresh: []plancheck.PlanCheck{plancheck.ExpectResourceAction(it, plancheck.ResourceActionUpdate)}},
				Check: resource.ComposeAggregateTestCheckFunc(attr("status", "failed"), attr("status_reason", "DataVolumeReplaced"), func(*terraform.State) error {
					if diff := cmp.Diff(before, l.uids("swapped")); diff != "" {
						return fmt.Errorf("objects: %s", diff)
					}
					if writes := l.requests("", "POST", "PUT", "PATCH", "DELETE"); len(writes) > 0 {
						return fmt.Errorf("written: %v", writes)
					}
					return nil
				}),
			},
		},
	})
}

// Somebody keeps the password elsewhere and removes the Secret: that is
// legitimate, told, and keeps nobody from changing the instance.
func TestRemovedSecretIsToldAndNotMadeAnew(t *testing.T) {
	l := useLab(t)
	var password, authority string
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("bare"),
		Steps: []resource.TestStep{
			{Config: l.config("bare", nil), Check: func(s *terraform.State) error {
				found := s.RootModule().Resources[it].Primary.Attributes
				password, authority = found["master_password"], found["ca_cert_pem"]
				return nil
			}},
			{
				PreConfig: func() {
					must(t, l.kube.CoreV1().Secrets(namespace).Delete(context.Background(), "pg-bare-credentials", metav1.DeleteOptions{}))
				},
				Config: l.config("bare", args{"instance_class": `"db.t3.small"`}),
				Check: resource.ComposeAggregateTestCheckFunc(
					attr("memory_mib", "2048"), attr("status", "available"), attr("status_reason", "CredentialsMissing"), attr("master_user_secret.status", "impaired"),
					value("master_password", func() string { return password }), value("ca_cert_pem", func() string { return authority }),
					func(*terraform.State) error {
						if l.credentials("bare") != nil {
							return fmt.Errorf("the Secret was made anew")
						}
						return nil
					},
				),
			},
			{Config: l.config("bare", args{"instance_class": `"db.t3.small"`}), PlanOnly: true},
		},
	})
}

// Twenty at once: each has its own address, and nothing is left.
func TestTwentyAtOnceHaveTheirOwnAddresses(t *testing.T) {
	l := useLab(t)
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("flock-%02d", i))
	}
	c := newCLI(t, required+l.several(names...))
	c.must("apply", "-auto-approve", "-input=false", "-no-color", "-parallelism=20")
	var addresses []string
	for _, name := range names {
		if a, ok := c.attributes(fmt.Sprintf("dbaas_instance.each[%q]", name))["address"].(string); ok && a != "" {
			addresses = append(addresses, a)
		}
	}
	slices.Sort(addresses)
	if len(slices.Compact(addresses)) != len(names) {
		t.Errorf("addresses: %v", addresses)
	}
	if code, out := c.run("plan", "-detailed-exitcode", "-input=false", "-no-color"); code != 0 {
		t.Errorf("a second plan: exit code %d\n%s", code, out)
	}
	c.must("destroy", "-auto-approve", "-input=false", "-no-color", "-parallelism=20")
	must(t, l.nothingLeft(names...)(nil))
}
