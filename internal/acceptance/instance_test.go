package acceptance

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"
)

const it = "dbaas_instance.it"

// value compares a state's value with what the cluster says at that time.
func value(attribute string, want func() string) resource.TestCheckFunc {
	return func(s *terraform.State) error {
		return resource.TestCheckResourceAttr(it, attribute, want())(s)
	}
}

func TestCreateReturnsWhatTheSecretHolds(t *testing.T) {
	l := useLab(t)
	config := l.config("created", nil)
	held := func(key string) func() string {
		return func() string { return string(l.credentials("created").Data[key]) }
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("created"),
		Steps: []resource.TestStep{
			{
				Config: config,
				Check: resource.ComposeAggregateTestCheckFunc(
					value("ca_cert_pem", held("ca_cert")),
					value("master_password", held("admin_password")),
					value("instance_id", held("instance_id")),
					value("address", held("host")),
					value("connection_uri", held("connection_uri")),
					value("jdbc_url", held("jdbc_url")),
					resource.TestCheckResourceAttr(it, "id", namespace+"/created"),
					resource.TestCheckResourceAttr(it, "master_username", "dbadmin"),
					resource.TestCheckResourceAttr(it, "db_name", "created"),
					resource.TestCheckResourceAttr(it, "port", "5432"),
					resource.TestCheckResourceAttr(it, "storage_type", "longhorn"),
					resource.TestCheckResourceAttr(it, "status", "available"),
					resource.TestCheckNoResourceAttr(it, "status_reason"),
					resource.TestCheckResourceAttr(it, "vcpu", "1"),
					resource.TestCheckResourceAttr(it, "memory_mib", "1024"),
					resource.TestCheckResourceAttr(it, "max_connections", "50"),
					resource.TestCheckResourceAttr(it, "master_user_secret.name", "pg-created-credentials"),
					resource.TestCheckResourceAttr(it, "master_user_secret.status", "active"),
					resource.TestCheckResourceAttr(it, "resources.vm_name", "pg-created"),
					resource.TestCheckResourceAttr(it, "resources.data_volume_name", "pg-created-data"),
				),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(it, tfjsonpath.New("static_network"), knownvalue.Null()),
				},
			},
			{
				PreConfig: l.reset,
				Config:    config,
				Check: func(*terraform.State) error {
					if writes := l.requests("", "POST", "PUT", "PATCH", "DELETE"); len(writes) > 0 {
						return fmt.Errorf("an apply without a change wrote: %v", writes)
					}
					if left := l.credentials("created").Data["ca_key"]; left != nil {
						return fmt.Errorf("the CA's key is still in the Secret")
					}
					return nil
				},
			},
			{ResourceName: it, ImportState: true, ImportStateVerify: true},
			{ResourceName: it, ImportState: true, ImportStateKind: resource.ImportBlockWithID},
		},
	})
}

func TestImportByIdentityNeedsNoChange(t *testing.T) {
	if filepath.Base(program()) == "tofu" {
		t.Skip("OpenTofu has no identities; with terraform on the PATH: make test-acceptance")
	}
	l := useLab(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("identified"),
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{skipping{tfversion.SkipBelow(tfversion.Version1_12_0)}},
		Steps: []resource.TestStep{
			{Config: l.config("identified", nil)},
			{ResourceName: it, ImportState: true, ImportStateKind: resource.ImportBlockWithResourceIdentity},
		},
	})
}

func TestManagedPasswordIsNowhereInTheState(t *testing.T) {
	l := useLab(t)
	var before string
	absent := func(s *terraform.State) error {
		before = string(l.credentials("managed").Data["admin_password"])
		state, err := json.Marshal(s)
		if err != nil {
			return err
		}
		if before == "" || strings.Contains(string(state), before) {
			return fmt.Errorf("the state holds the password, or the Secret does not")
		}
		return nil
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("managed"),
		Steps: []resource.TestStep{
			{Config: l.config("managed", args{"manage_master_user_password": "true"}), Check: absent},
			{
				Config: l.config("managed", args{"manage_master_user_password": "false"}),
				Check:  value("master_password", func() string { return before }),
			},
			{Config: l.config("managed", args{"manage_master_user_password": "true"}), Check: absent},
		},
	})
}

func TestPlanRefusesToChangeWhatIsSettled(t *testing.T) {
	l := useLab(t)
	refused := func(changes args, text string) resource.TestStep {
		return resource.TestStep{Config: l.config("settled", changes), PlanOnly: true, ExpectError: regexp.MustCompile(text)}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("settled"),
		Steps: []resource.TestStep{
			{Config: l.config("settled", nil)},
			refused(args{"instance_class": `"db.t3.huge"`}, `db\.t3\.small`),
			refused(args{"allocated_storage": "5"}, `cannot shrink`),
			refused(args{"engine_version": `"16"`}, `has engine_version = "15"`),
			{Config: l.config("settled", args{"engine_version": "", "os_image": "", "port": "5432"}), PlanOnly: true},
		},
	})
}

// What only the apply gets to know is compared then, before anything is written.
func TestValueThatIsKnownTooLateIsComparedBeforeAnyWrite(t *testing.T) {
	l := useLab(t)
	late := func(port string, arguments args) string {
		all := args{"port": "tonumber(terraform_data.port.output)"}
		maps.Copy(all, arguments)
		return l.config("late", all) + "\nresource \"terraform_data\" \"port\" {\n  input = " + quote(port) + "\n}\n"
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("late"),
		Steps: []resource.TestStep{
			{Config: late("5432", nil), Check: resource.TestCheckResourceAttr(it, "port", "5432")},
			{
				PreConfig: l.reset,
				Config:    late("5433", args{"tags": `{ team = "payments" }`, "instance_class": `"db.t3.small"`}), ExpectError: regexp.MustCompile(`port\s+=\s+5432`),
			},
			{
				PreConfig: func() {
					if writes := l.requests("", "POST", "PUT", "PATCH", "DELETE"); len(writes) > 0 {
						t.Errorf("the refused apply wrote: %v", writes)
					}
				},
				Config: late("5432", nil), Check: resource.TestCheckResourceAttr(it, "vcpu", "1"),
			},
		},
	})
}
