package acceptance

import (
	"context"
	"fmt"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStoppedInstanceIsChangedAndStarted(t *testing.T) {
	l := useLab(t)
	var address string
	var boots func() int
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("resting"),
		Steps: []resource.TestStep{
			{
				Config: l.config("resting", args{"running": "false"}),
				Check: resource.ComposeAggregateTestCheckFunc(
					attr("status", "stopped"), resource.TestCheckNoResourceAttr(it, "status_reason"), resource.TestCheckResourceAttrSet(it, "address"),
					func(s *terraform.State) error {
						address = s.RootModule().Resources[it].Primary.Attributes["address"]
						if l.credentials("resting").Data["ca_key"] != nil || l.running("resting") != nil {
							return fmt.Errorf("it runs, or was never available")
						}
						return nil
					},
				),
			},
			{
				PreConfig: func() { boots = l.boots("resting") },
				Config: l.config("resting", args{
					"running": "false", "instance_class": `"db.t3.small"`, "allocated_storage": "20", "parameters": `{ work_mem = "8MB" }`,
				}),
				Check: resource.ComposeAggregateTestCheckFunc(
					restarted(&boots, 0), attr("status", "stopped"), attr("memory_mib", "2048"), attr("allocated_storage", "20"),
					value("address", func() string { return address }),
				),
			},
			{
				Config: l.config("resting", args{"instance_class": `"db.t3.small"`, "allocated_storage": "20", "parameters": `{ work_mem = "8MB" }`}),
				Check: resource.ComposeAggregateTestCheckFunc(
					restarted(&boots, 1), attr("status", "available"), attr("running", "true"), resource.TestCheckNoResourceAttr(it, "status_reason"),
				),
			},
			{
				Config: l.config("resting", args{"running": "false", "port": "5433"}), PlanOnly: true,
				ExpectError: regexp.MustCompile(`has port = 5432`),
			},
			{
				Config: l.config("resting", args{"instance_class": `"db.t3.small"`, "allocated_storage": "20", "running": "false"}),
				Check:  resource.ComposeAggregateTestCheckFunc(attr("status", "stopped"), attr("parameters.%", "0"), value("address", func() string { return address })),
			},
			{
				// A start at once after the stop.
				Config: l.config("resting", args{"instance_class": `"db.t3.small"`, "allocated_storage": "20"}),
				Check:  attr("status", "available"),
			},
		},
	})
}

func TestDriftIsPutRight(t *testing.T) {
	l := useLab(t)
	updates := resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(it, plancheck.ResourceActionUpdate)}}
	healthy := resource.ComposeAggregateTestCheckFunc(
		attr("status", "available"), resource.TestCheckNoResourceAttr(it, "status_reason"), attr("vcpu", "1"), attr("running", "true"), attr("tags_all.%", "0"),
	)
	step := func(drift map[string]any) resource.TestStep {
		return resource.TestStep{
			PreConfig: func() { l.patchMachine("drifted", drift) }, Config: l.config("drifted", nil), ConfigPlanChecks: updates, Check: healthy,
		}
	}
	shape := map[string]any{"template": map[string]any{"spec": map[string]any{"domain": map[string]any{
		"cpu": map[string]any{"cores": 3}, "resources": map[string]any{"limits": map[string]any{"cpu": "3"}},
	}}}}
	stopped := map[string]any{"runStrategy": "Halted"}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("drifted"),
		Steps: []resource.TestStep{
			{Config: l.config("drifted", nil)},
			step(map[string]any{"spec": stopped}),
			step(map[string]any{"spec": shape}),
			step(map[string]any{"metadata": map[string]any{"labels": map[string]any{"tag.harvesterhci.io/by-hand": "yes"}}}),
			// As after an apply that was killed between stop and start.
			step(map[string]any{"spec": map[string]any{"runStrategy": "Halted", "template": shape["template"]}}),
		},
	})
}

func TestLostMachineIsMadeAnewOnItsOwnDisks(t *testing.T) {
	l := useLab(t)
	var before map[string]string
	var volume string
	uid := func() string {
		claim, err := l.kube.CoreV1().PersistentVolumeClaims(namespace).Get(context.Background(), "pg-lost-data", metav1.GetOptions{})
		must(t, err)
		return string(claim.UID)
	}
	lose := func() {
		must(t, l.dynamic.Resource(machines()).Namespace(namespace).Delete(context.Background(), "pg-lost", metav1.DeleteOptions{}))
		l.gone("lost")
	}
	config := l.config("lost", args{"tags": `{ team = "payments" }`, "deletion_protection": "true"})
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("lost"),
		Steps: []resource.TestStep{
			{Config: config, Check: func(s *terraform.State) error {
				before, volume = s.RootModule().Resources[it].Primary.Attributes, uid()
				return nil
			}},
			{
				PreConfig: lose,
				Config:    config,
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(it, plancheck.ResourceActionUpdate),
				}},
				Check: func(s *terraform.State) error {
					after := s.RootModule().Resources[it].Primary.Attributes
					for name, value := range before {
						if after[name] != value {
							return fmt.Errorf("%s was %q and is %q", name, value, after[name])
						}
					}
					if uid() != volume {
						return fmt.Errorf("the data volume is another one")
					}
					return nil
				},
			},
			{ResourceName: it, ImportState: true, ImportStateVerify: true},
			{Config: l.config("lost", args{"tags": `{ team = "payments" }`})},
		},
	})
}

func TestBackupInProgressDelaysARestart(t *testing.T) {
	l := useLab(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("backedup"),
		Steps: []resource.TestStep{
			{Config: l.config("backedup", nil)},
			{
				PreConfig:   func() { l.knob(namespace+".pg-backedup.backup", "true") },
				Config:      l.config("backedup", args{"instance_class": `"db.t3.small"`, "timeouts": `{ update = "6s" }`}),
				ExpectError: regexp.MustCompile(`(?s)a\s+backup\s+of\s+it\s+did\s+not\s+end`),
			},
			{
				PreConfig: func() { l.knob(namespace+".pg-backedup.backup", "") },
				Config:    l.config("backedup", args{"instance_class": `"db.t3.small"`}),
				Check:     resource.ComposeAggregateTestCheckFunc(attr("status", "available"), attr("memory_mib", "2048")),
			},
		},
	})
}

// gone waits until the virtual machine of an instance is gone.
func (l *lab) gone(name string) {
	l.t.Helper()
	ctx, stop := context.WithTimeout(l.t.Context(), deleteWithin)
	defer stop()
	events, err := l.dynamic.Resource(machines()).Namespace(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=pg-" + name})
	must(l.t, err)
	defer events.Stop()
	for l.machine(name) != nil {
		if _, open := <-events.ResultChan(); !open {
			l.t.Fatal("the virtual machine is not gone in time")
		}
	}
}
