package acceptance

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/wso2/terraform-provider-dbaas/internal/instance"
	"github.com/wso2/terraform-provider-dbaas/internal/provider"
)

// readsBeside are data sources that look at the instance "it" and around it.
func readsBeside(name string) string {
	return fmt.Sprintf(`
data "dbaas_instance" "it" {
  namespace = dbaas_instance.it.namespace
  name      = dbaas_instance.it.name
}

data "dbaas_instances" "tagged" {
  namespace      = %[1]q
  label_selector = "tag.harvesterhci.io/story=%[2]s"
  status         = "available"
  depends_on     = [dbaas_instance.it]
}

data "dbaas_instances" "stopped" {
  namespace      = %[1]q
  label_selector = "tag.harvesterhci.io/story=%[2]s"
  status         = "stopped"
  depends_on     = [dbaas_instance.it]
}

data "dbaas_instance_classes" "all" {}

data "dbaas_image" "debian" {
  os_image = "default/debian-12"
}
`, namespace, name)
}

func TestDataSourcesShowWhatStands(t *testing.T) {
	l := useLab(t)
	same := func(attributes ...string) resource.TestCheckFunc {
		var checks []resource.TestCheckFunc
		for _, attribute := range attributes {
			checks = append(checks, resource.TestCheckResourceAttrPair("data.dbaas_instance.it", attribute, it, attribute))
		}
		return resource.ComposeAggregateTestCheckFunc(checks...)
	}
	of := func(source, attribute, want string) resource.TestCheckFunc {
		return resource.TestCheckResourceAttr("data."+source, attribute, want)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("watched"),
		Steps: []resource.TestStep{
			{
				Config: l.config("watched", args{"tags": `{ story = "watched" }`, "dns_names": `["db.example.com"]`, "parameters": `{ work_mem = "8MB" }`}) + readsBeside("watched"),
				Check: resource.ComposeAggregateTestCheckFunc(
					same("id", "instance_id", "instance_class", "vcpu", "memory_mib", "max_connections", "allocated_storage", "storage_type", "os_image",
						"network_ref", "engine_version", "engine_version_actual", "db_name", "master_username", "port", "parameters.work_mem", "dns_names.0",
						"running", "deletion_protection", "deletion_policy", "tags.story", "status", "address", "endpoint", "connection_uri", "jdbc_url",
						"ca_cert_pem", "ca_valid_until", "master_user_secret.name", "resources.vm_name"),
					of("dbaas_instance.it", "operator_managed", "false"),
					of("dbaas_instances.tagged", "instances.#", "1"), of("dbaas_instances.tagged", "instances.0.name", "watched"),
					of("dbaas_instances.stopped", "instances.#", "0"),
					of("dbaas_instance_classes.all", "classes.db.r5.large.memory_mib", "16384"),
					of("dbaas_image.debian", "id", "default/debian-12"), of("dbaas_image.debian", "os_disk_gib", "20"),
					resource.TestCheckResourceAttrSet("data.dbaas_image.debian", "storage_class"),
					func(s *terraform.State) error {
						secret := s.RootModule().Resources[it].Primary.Attributes["master_password"]
						for address, read := range s.RootModule().Resources {
							for attribute, value := range read.Primary.Attributes {
								if strings.HasPrefix(address, "data.") && strings.Contains(value, secret) {
									return fmt.Errorf("%s.%s holds the password", address, attribute)
								}
							}
						}
						return nil
					},
				),
			},
			{
				Config:      l.config("watched", args{"tags": `{ story = "watched" }`}) + "data \"dbaas_instance\" \"no\" {\n  namespace = \"" + namespace + "\"\n  name = \"nobody\"\n}\n",
				PlanOnly:    true,
				ExpectError: regexp.MustCompile(`neither its virtual machine pg-nobody nor`),
			},
			{
				Config:      l.config("watched", args{"tags": `{ story = "watched" }`}) + "data \"dbaas_instances\" \"no\" {\n  label_selector = \"a b\"\n}\n",
				PlanOnly:    true,
				ExpectError: regexp.MustCompile(`"a b" is not a label selector`),
			},
			{
				Config:      l.config("watched", args{"tags": `{ story = "watched" }`}) + "data \"dbaas_image\" \"no\" {\n  os_image = \"debian-99\"\n}\n",
				PlanOnly:    true,
				ExpectError: regexp.MustCompile(`(?s)no such image.*Namespace default holds:`),
			},
		},
	})
}

// A refresh of an instance that is where it is meant to be costs five requests.
func TestRefreshIsFiveRequests(t *testing.T) {
	l := useLab(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("counted"),
		Steps: []resource.TestStep{
			{Config: l.config("counted", nil)},
			{
				PreConfig: l.reset, RefreshState: true,
				Check: func(*terraform.State) error {
					sent := l.requests("", "GET", "POST", "PUT", "PATCH", "DELETE")
					// The step reads for its refresh and for the plan after it.
					if len(sent) == 0 || len(sent)%5 != 0 || len(l.requests("/virtualmachines/", "GET")) != len(sent)/5 {
						return fmt.Errorf("%d requests: %v", len(sent), sent)
					}
					return nil
				},
			},
		},
	})
}

// A create sends twelve requests before it asks for the machine, however large
// the cluster is.
func TestCreateIsTwelveRequestsBeforeItsMachine(t *testing.T) {
	l := useLab(t)
	store := l.store()
	created, err := store.Create(t.Context(), smallest("twelve"), func(*instance.Instance) {})
	must(t, err)
	var before []request
	for _, r := range l.requests("", "GET", "WATCH", "POST", "PUT", "PATCH", "DELETE") {
		if r.Method == "POST" && strings.Contains(r.Path, "/virtualmachines") {
			break
		}
		before = append(before, r)
	}
	if len(before) != 12 {
		t.Errorf("%d requests: %v", len(before), before)
	}
	_, err = store.Delete(t.Context(), instance.DeleteRequest{Key: created.Key(), Intent: instance.IntentDestroy})
	must(t, err)
	must(t, l.nothingLeft("twelve")(nil))
}

// restart invokes the action dbaas_restart through the protocol, as Terraform
// 1.14 does, and returns the progress and what went wrong.
func (l *lab) restart(id string) (progress []string, problem string) {
	l.t.Helper()
	server, err := providerserver.NewProtocol6WithError(provider.New("test")())()
	must(l.t, err)
	schemas, err := server.GetProviderSchema(l.t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	must(l.t, err)
	configured, err := server.ConfigureProvider(l.t.Context(), &tfprotov6.ConfigureProviderRequest{
		Config: pack(l.t, schemas.Provider, map[string]string{"config_path": l.kubeconfig}),
	})
	must(l.t, err)
	for _, d := range configured.Diagnostics {
		l.t.Fatal(d.Summary, d.Detail)
	}
	stream, err := server.(tfprotov6.ActionServer).InvokeAction(l.t.Context(), &tfprotov6.InvokeActionRequest{
		ActionType: "dbaas_restart", Config: pack(l.t, schemas.ActionSchemas["dbaas_restart"].Schema, map[string]string{"id": id}),
	})
	must(l.t, err)
	for event := range stream.Events {
		switch event := event.Type.(type) {
		case tfprotov6.ProgressInvokeActionEventType:
			progress = append(progress, event.Message)
		case tfprotov6.CompletedInvokeActionEventType:
			for _, d := range event.Diagnostics {
				problem += d.Summary + ": " + d.Detail + "\n"
			}
		}
	}
	return progress, problem
}

// pack is a block whose arguments are texts; all others are null.
func pack(t *testing.T, schema *tfprotov6.Schema, arguments map[string]string) *tfprotov6.DynamicValue {
	t.Helper()
	typ := schema.ValueType().(tftypes.Object)
	values := map[string]tftypes.Value{}
	for name, attribute := range typ.AttributeTypes {
		values[name] = tftypes.NewValue(attribute, nil)
		if given, ok := arguments[name]; ok {
			values[name] = tftypes.NewValue(attribute, given)
		}
	}
	packed, err := tfprotov6.NewDynamicValue(typ, tftypes.NewValue(typ, values))
	must(t, err)
	return &packed
}

func TestRestartAction(t *testing.T) {
	l := useLab(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("renewed"),
		Steps: []resource.TestStep{
			{
				Config: l.config("renewed", nil),
				Check: func(*terraform.State) error {
					boots := l.boots("renewed")
					before := l.running("renewed").GetUID()
					progress, problem := l.restart(namespace + "/renewed")
					if problem != "" {
						return fmt.Errorf("restart: %s", problem)
					}
					if after := l.running("renewed"); after == nil || after.GetUID() == before || boots() != 1 {
						return fmt.Errorf("it was not restarted once: %v", after)
					}
					if len(progress) < 2 {
						return fmt.Errorf("progress: %q", progress)
					}
					return nil
				},
			},
			{Config: l.config("renewed", nil), PlanOnly: true},
			{
				Config: l.config("renewed", args{"running": "false"}),
				Check: func(*terraform.State) error {
					l.reset()
					_, problem := l.restart(namespace + "/renewed")
					if !strings.Contains(problem, "it does not run") {
						return fmt.Errorf("restart of what is stopped: %q", problem)
					}
					if _, problem := l.restart(namespace + "/nobody"); !strings.Contains(problem, "neither its virtual machine") {
						return fmt.Errorf("restart of nobody: %q", problem)
					}
					if writes := l.requests("", "POST", "PUT", "PATCH", "DELETE"); len(writes) > 0 {
						return fmt.Errorf("a refused restart wrote: %v", writes)
					}
					return nil
				},
			},
		},
	})
}
