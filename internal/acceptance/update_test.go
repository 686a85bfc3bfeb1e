package acceptance

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// boots counts the machines that an instance was started with from now on.
func (l *lab) boots(name string) func() int {
	l.t.Helper()
	kind := machines()
	kind.Resource = "virtualmachineinstances"
	ctx, stop := context.WithCancel(context.Background())
	l.t.Cleanup(stop)
	one := metav1.ListOptions{FieldSelector: "metadata.name=pg-" + name}
	seen, err := l.dynamic.Resource(kind).Namespace(namespace).Watch(ctx, one)
	must(l.t, err)
	var mutex sync.Mutex
	uids := map[types.UID]bool{}
	go func() {
		for event := range seen.ResultChan() {
			if machine, ok := event.Object.(*unstructured.Unstructured); ok {
				mutex.Lock()
				uids[machine.GetUID()] = true
				mutex.Unlock()
			}
		}
	}()
	first := len(l.machineUIDs(name))
	return func() int {
		l.t.Helper()
		now := l.machineUIDs(name)
		mutex.Lock()
		defer mutex.Unlock()
		maps.Copy(uids, now)
		return len(uids) - first
	}
}

// machineUIDs are those of the machine that runs, if one does.
func (l *lab) machineUIDs(name string) map[types.UID]bool {
	l.t.Helper()
	if machine := l.running(name); machine != nil {
		return map[types.UID]bool{machine.GetUID(): true}
	}
	return map[types.UID]bool{}
}

// running is the VMI of an instance; nil if there is none.
func (l *lab) running(name string) *unstructured.Unstructured {
	l.t.Helper()
	kind := machines()
	kind.Resource = "virtualmachineinstances"
	list, err := l.dynamic.Resource(kind).Namespace(namespace).List(context.Background(), metav1.ListOptions{FieldSelector: "metadata.name=pg-" + name})
	must(l.t, err)
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

// restarted checks how often an instance was started anew.
func restarted(boots *func() int, want int) resource.TestCheckFunc {
	return func(*terraform.State) error {
		if got := (*boots)(); got != want {
			return fmt.Errorf("%d starts of the machine, want %d", got, want)
		}
		return nil
	}
}

func attr(name, value string) resource.TestCheckFunc {
	return resource.TestCheckResourceAttr(it, name, value)
}

func TestClassStorageAndParametersRestartOnce(t *testing.T) {
	l := useLab(t)
	var boots func() int
	var before map[string]string
	changed := args{
		"instance_class": `"db.t3.medium"`, "allocated_storage": "20", "parameters": `{ work_mem = "8MB" }`,
		"extensions": `["pgcrypto"]`, "allowed_cidrs": `["198.18.0.0/16"]`, "dns_names": `["orders.example.com"]`,
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("changed"),
		Steps: []resource.TestStep{
			{Config: l.config("changed", nil), Check: func(s *terraform.State) error {
				before = s.RootModule().Resources[it].Primary.Attributes
				return nil
			}},
			{
				PreConfig: func() { boots = l.boots("changed") },
				Config:    l.config("changed", changed),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(it, plancheck.ResourceActionUpdate),
				}},
				Check: resource.ComposeAggregateTestCheckFunc(
					restarted(&boots, 1),
					attr("status", "available"), attr("vcpu", "2"), attr("memory_mib", "4096"), attr("max_connections", "150"),
					attr("allocated_storage", "20"), attr("parameters.work_mem", "8MB"),
					func(s *terraform.State) error {
						after := s.RootModule().Resources[it].Primary.Attributes
						for _, kept := range []string{"master_password", "ca_cert_pem", "instance_id", "address"} {
							if before[kept] != after[kept] {
								return fmt.Errorf("%s has changed", kept)
							}
						}
						cores, _, err := unstructured.NestedInt64(l.running("changed").Object, "spec", "domain", "cpu", "cores")
						if err != nil || cores != 2 {
							return fmt.Errorf("the machine runs with %d cores: %w", cores, err)
						}
						return nil
					},
				),
			},
			{
				PreConfig: l.reset, Config: l.config("changed", changed),
				Check: func(*terraform.State) error { return l.wroteNothing() },
			},
			{ResourceName: it, ImportState: true, ImportStateVerify: true},
			// All of it back, but the volume.
			{
				PreConfig: func() { boots = l.boots("changed") },
				Config:    l.config("changed", args{"allocated_storage": "20"}),
				Check:     resource.ComposeAggregateTestCheckFunc(restarted(&boots, 1), attr("vcpu", "1"), attr("extensions.#", "0"), attr("allowed_cidrs.#", "2")),
			},
			{Config: l.config("changed", nil), PlanOnly: true, ExpectError: regexp.MustCompile(`Write allocated_storage\s+= 20`)},
		},
	})
}

// wroteNothing says what was written since the last reset.
func (l *lab) wroteNothing() error {
	if writes := l.requests("", "POST", "PUT", "PATCH", "DELETE"); len(writes) > 0 {
		return fmt.Errorf("written: %v", writes)
	}
	return nil
}

func TestDescriptionRestartsNothing(t *testing.T) {
	l := useLab(t)
	var boots func() int
	describe := args{
		"tags": `{ team = "payments" }`, "deletion_policy": `"retain"`, "deletion_protection": "true", "manage_master_user_password": "true",
		"package_source": `{ apt_proxy = "http://proxy.example.com:3142" }`,
	}
	flapping := maps.Clone(describe)
	flapping["tags"] = `{ team = "billing" }`
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("described"),
		Steps: []resource.TestStep{
			{Config: l.config("described", nil)},
			{
				PreConfig: func() { l.reset(); boots = l.boots("described") },
				Config:    l.config("described", describe),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(it, plancheck.ResourceActionUpdate),
				}},
				Check: resource.ComposeAggregateTestCheckFunc(
					restarted(&boots, 0), attr("tags_all.team", "payments"),
					func(*terraform.State) error {
						if got := l.machine("described").GetLabels()["tag.harvesterhci.io/team"]; got != "payments" {
							return fmt.Errorf("the virtual machine's tag is %q", got)
						}
						// One request for the VM, one for the document.
						var written []string
						for _, r := range l.requests("", "POST", "PUT", "PATCH", "DELETE") {
							written = append(written, r.Method+" "+r.Path[strings.LastIndex(r.Path, "/")+1:])
						}
						slices.Sort(written)
						if diff := cmp.Diff([]string{"PATCH pg-described-cloudinit?fieldManager=terraform-provider-dbaas", "PATCH pg-described?fieldManager=terraform-provider-dbaas"}, written); diff != "" {
							return fmt.Errorf("written:\n%s", diff)
						}
						return nil
					},
				),
			},
			{
				// Address and readiness change while only tags are applied.
				PreConfig: func() {
					l.knob(namespace+".pg-described.ready-flaps", "300ms")
					l.knob(namespace+".pg-described.addresses", `[{"after":"0s","addresses":{"data-net":["10.0.2.2"]}}]`)
				},
				Config: l.config("described", flapping),
				Check:  resource.ComposeAggregateTestCheckFunc(restarted(&boots, 0), attr("tags_all.team", "billing")),
			},
			{
				PreConfig: func() {
					l.knob(namespace+".pg-described.ready-flaps", "")
					l.knob(namespace+".pg-described.addresses", "")
				},
				Config: l.config("described", nil),
				Check:  resource.ComposeAggregateTestCheckFunc(restarted(&boots, 0), attr("tags_all.%", "0"), resource.TestCheckNoResourceAttr(it, "package_source.apt_proxy")),
			},
		},
	})
}

func TestRefusedSettingIsTakenBack(t *testing.T) {
	l := useLab(t)
	refuse := func(on string) func() {
		return func() {
			words := ""
			if on != "" {
				words = `dbaas: step=converge state=failed reason="PostgreSQL refuses the configuration and serves with the last good one: invalid value for parameter work_mem: 8GB"`
			}
			l.knob(namespace+".pg-refused.never-ready", on)
			l.knob(namespace+".pg-refused.console", words)
		}
	}
	good, bad := args{"parameters": `{ work_mem = "8MB" }`}, args{"parameters": `{ work_mem = "8GB" }`}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("refused"),
		Steps: []resource.TestStep{
			{Config: l.config("refused", good)},
			{PreConfig: refuse("true"), Config: l.config("refused", bad), ExpectError: regexp.MustCompile(`(?s)invalid\s+value\s+for\s+parameter\s+work_mem.*serves\s+on`)},
			{
				PreConfig: refuse(""),
				Config:    l.config("refused", good),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(it, plancheck.ResourceActionUpdate),
				}},
				Check: resource.ComposeAggregateTestCheckFunc(attr("status", "available"), attr("parameters.work_mem", "8MB"), resource.TestCheckNoResourceAttr(it, "status_reason")),
			},
		},
	})
}

func TestVolumeGrowsAsTheClusterCan(t *testing.T) {
	l := useLab(t)
	var boots func() int
	claim := namespace + ".pg-grown-data."
	begin := func(knobs ...string) func() {
		return func() {
			for _, name := range []string{"grow-offline", "claim-frozen"} {
				value := ""
				if slices.Contains(knobs, name) {
					value = "true"
				}
				l.knob(claim+name, value)
			}
			boots = l.boots("grown")
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("grown"),
		Steps: []resource.TestStep{
			{Config: l.config("grown", nil)},
			{
				PreConfig: begin(), Config: l.config("grown", args{"allocated_storage": "11"}),
				Check: resource.ComposeAggregateTestCheckFunc(restarted(&boots, 0), attr("allocated_storage", "11"), attr("status", "available")),
			},
			{
				PreConfig: begin("grow-offline"), Config: l.config("grown", args{"allocated_storage": "12"}),
				Check: resource.ComposeAggregateTestCheckFunc(restarted(&boots, 1), attr("allocated_storage", "12"), attr("status", "available")),
			},
			{
				PreConfig:   begin("claim-frozen"),
				Config:      l.config("grown", args{"allocated_storage": "13", "timeouts": `{ update = "8s" }`}),
				ExpectError: regexp.MustCompile(`(?s)asks for\s+13\s+GiB\s+and\s+has\s+12\s+GiB`),
			},
			{
				// What was asked for is not what stands: the next plan goes on.
				PreConfig: begin(), Config: l.config("grown", args{"allocated_storage": "13"}),
				Check: resource.ComposeAggregateTestCheckFunc(restarted(&boots, 0), attr("allocated_storage", "13")),
			},
		},
	})
}
