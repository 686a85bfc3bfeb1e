package acceptance

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/echoprovider"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"
)

// held is a value of the credentials Secret.
func (l *lab) held(name, key string) func() string {
	return func() string { return string(l.credentials(name).Data[key]) }
}

// inForce checks which password is, that no other is under way, and that
// nothing of it stands in the guest's document or in Terraform's state.
func (l *lab) inForce(name, password string) resource.TestCheckFunc {
	return func(s *terraform.State) error {
		secret := l.credentials(name)
		if string(secret.Data["admin_password"]) != password || secret.Data["admin_password_next"] != nil {
			return fmt.Errorf("the Secret does not hold the one password that was wanted")
		}
		state, err := json.Marshal(s)
		if err != nil {
			return err
		}
		if strings.Contains(string(state), password) {
			return fmt.Errorf("the state holds the password")
		}
		document := l.secret("pg-" + name + "-cloudinit")
		if strings.Contains(string(document.Data["userdata"]), "SCRAM-SHA-256$") || strings.Contains(string(document.Data["userdata"]), password) {
			return fmt.Errorf("the guest's document still holds a verifier")
		}
		return nil
	}
}

func TestSuppliedPasswordIsSetByItsVersion(t *testing.T) {
	l := useLab(t)
	own := func(password, version string) args {
		return args{"master_password_wo": quote(password), "master_password_wo_version": version}
	}
	var boots func() int
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("supplied"),
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{skipping{tfversion.SkipBelow(tfversion.Version1_11_0)}},
		Steps: []resource.TestStep{
			{Config: l.config("supplied", own("first's \"word\"", "1")), Check: resource.ComposeAggregateTestCheckFunc(
				l.inForce("supplied", "first's \"word\""), resource.TestCheckNoResourceAttr(it, "master_password"),
			)},
			// Terraform cannot see that a write-only value has changed.
			{Config: l.config("supplied", own("unseen password", "1")), PlanOnly: true},
			{ResourceName: it, ImportState: true, ImportStateVerify: true, ImportStateVerifyIgnore: []string{"master_password_wo"}},
			{
				PreConfig: func() { boots = l.boots("supplied") },
				Config:    l.config("supplied", own("second password", "2")),
				Check:     resource.ComposeAggregateTestCheckFunc(l.inForce("supplied", "second password"), restarted(&boots, 1), attr("master_password_wo_version", "2")),
			},
			{
				// Switching the mode shows the password and changes nothing.
				Config: l.config("supplied", nil),
				Check:  resource.ComposeAggregateTestCheckFunc(value("master_password", l.held("supplied", "admin_password")), attr("master_password", "second password"), restarted(&boots, 1)),
			},
			{
				Config: l.config("supplied", args{"manage_master_user_password": "true"}),
				Check:  resource.ComposeAggregateTestCheckFunc(l.inForce("supplied", "second password"), restarted(&boots, 1)),
			},
		},
	})
}

func TestRotationDrawsANewPassword(t *testing.T) {
	l := useLab(t)
	var before string
	var boots func() int
	changed := func(*terraform.State) error {
		now := l.held("rotated", "admin_password")()
		if now == before || now == "" || l.held("rotated", "admin_password_next")() != "" {
			return fmt.Errorf("the password was not rotated")
		}
		return nil
	}
	remember := func() { before, boots = l.held("rotated", "admin_password")(), l.boots("rotated") }
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("rotated"),
		Steps: []resource.TestStep{
			{Config: l.config("rotated", nil)},
			{
				PreConfig: remember, Config: l.config("rotated", args{"password_rotation": "1"}),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectUnknownValue(it, tfjsonpath.New("master_password")),
				}},
				Check: resource.ComposeAggregateTestCheckFunc(changed, restarted(&boots, 1), value("master_password", l.held("rotated", "admin_password"))),
			},
			{
				// Left out again it changes nothing.
				PreConfig: remember, Config: l.config("rotated", nil),
				Check: resource.ComposeAggregateTestCheckFunc(restarted(&boots, 0), value("master_password", func() string { return before })),
			},
			{
				PreConfig: remember, Config: l.config("rotated", args{"password_rotation": "2", "manage_master_user_password": "true"}),
				Check: resource.ComposeAggregateTestCheckFunc(changed, restarted(&boots, 1), resource.TestCheckNoResourceAttr(it, "master_password")),
			},
			{
				Config: l.config("rotated", args{"password_rotation": "3", "running": "false", "manage_master_user_password": "true"}), PlanOnly: true,
				ExpectError: regexp.MustCompile(`stands still`),
			},
		},
	})
}

func TestInterruptedRotationIsFinishedWithItsPassword(t *testing.T) {
	l := useLab(t)
	var old, next string
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("broken"),
		Steps: []resource.TestStep{
			{Config: l.config("broken", args{"password_rotation": "1"})},
			{
				PreConfig:   func() { old = l.held("broken", "admin_password")(); l.knob(namespace+".pg-broken.never-ready", "true") },
				Config:      l.config("broken", args{"password_rotation": "2", "timeouts": `{ update = "15s" }`}),
				ExpectError: regexp.MustCompile(`not\s+available\s+in\s+time`),
			},
			{
				PreConfig: func() {
					l.knob(namespace+".pg-broken.never-ready", "")
					next = l.held("broken", "admin_password_next")()
					if next == "" || l.held("broken", "admin_password")() != old {
						t.Error("the Secret does not hold both passwords")
					}
				},
				Config: l.config("broken", args{"password_rotation": "2"}),
				Check: resource.ComposeAggregateTestCheckFunc(
					value("master_password", func() string { return next }), value("master_password", l.held("broken", "admin_password")),
					attr("password_rotation", "2"), attr("status", "available"), resource.TestCheckNoResourceAttr(it, "status_reason"),
				),
			},
			{
				// Interrupted again, and then another one is wanted, and no more this one.
				PreConfig:   func() { l.knob(namespace+".pg-broken.never-ready", "true") },
				Config:      l.config("broken", args{"password_rotation": "3", "timeouts": `{ update = "15s" }`}),
				ExpectError: regexp.MustCompile(`not\s+available\s+in\s+time`),
			},
			{
				PreConfig: func() {
					l.knob(namespace+".pg-broken.never-ready", "")
					next = l.held("broken", "admin_password_next")()
				},
				Config: l.config("broken", args{"password_rotation": "4"}),
				Check: func(s *terraform.State) error {
					if l.held("broken", "admin_password")() == next {
						return fmt.Errorf("the newer rotation was not done")
					}
					return value("master_password", l.held("broken", "admin_password"))(s)
				},
			},
		},
	})
}

func TestEphemeralCredentialsReachAnotherProvider(t *testing.T) {
	l := useLab(t)
	all := factories()
	all["echo"] = echoprovider.NewProviderServer()
	config := l.config("borrowed", args{"manage_master_user_password": "true"}) + `
ephemeral "dbaas_credentials" "it" {
  id = dbaas_instance.it.id
}

provider "echo" {
  data = merge(ephemeral.dbaas_credentials.it, {
    uri  = provider::dbaas::connection_uri(ephemeral.dbaas_credentials.it)
    jdbc = provider::dbaas::jdbc_url(ephemeral.dbaas_credentials.it)
  })
}

resource "echo" "it" {}
`
	data := func(name string) tfjsonpath.Path { return tfjsonpath.New("data").AtMapKey(name) }
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: all,
		CheckDestroy:             l.nothingLeft("borrowed"),
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{skipping{tfversion.SkipBelow(tfversion.Version1_10_0)}},
		Steps: []resource.TestStep{{
			Config: config,
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue("echo.it", data("username"), knownvalue.StringExact("dbadmin")),
				statecheck.ExpectKnownValue("echo.it", data("dbname"), knownvalue.StringExact("borrowed")),
				statecheck.ExpectKnownValue("echo.it", data("password"), knownvalue.StringFunc(func(got string) error {
					if got == "" || got != l.held("borrowed", "admin_password")() {
						return fmt.Errorf("it is not the Secret's")
					}
					return nil
				})),
				statecheck.ExpectKnownValue("echo.it", data("uri"), knownvalue.StringFunc(func(got string) error {
					if want := "postgresql://dbadmin:" + l.held("borrowed", "admin_password")() + "@" + l.held("borrowed", "endpoint")() + "/borrowed?sslmode=verify-full"; got != want {
						return fmt.Errorf("it is not that of the Secret")
					}
					return nil
				})),
			},
			Check: func(s *terraform.State) error {
				state, err := json.Marshal(s.RootModule().Resources[it])
				if err != nil || strings.Contains(string(state), l.held("borrowed", "admin_password")()) {
					return fmt.Errorf("the instance's state holds the password: %w", err)
				}
				return nil
			},
		}},
	})
}
