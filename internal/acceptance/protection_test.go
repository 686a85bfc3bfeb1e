package acceptance

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
)

// untouched is the proof that nothing was deleted since the last reset.
func (l *lab) untouched(*terraform.State) error {
	if sent := l.requests("", "DELETE"); len(sent) > 0 {
		return fmt.Errorf("sent: %v", sent)
	}
	return nil
}

func TestProtectedInstanceSurvives(t *testing.T) {
	l := useLab(t)
	on := args{"deletion_protection": "true"}
	lifecycle := args{"deletion_protection": "true", "lifecycle {": "\n    create_before_destroy = true\n  }"}
	protected := regexp.MustCompile(`(?s)protected`)
	// Each refusal is followed by a step that finds all as it was.
	intact := resource.TestStep{
		Config: l.config("kept", on), Check: l.untouched,
		ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("kept", "other"),
		Steps: []resource.TestStep{
			{Config: l.config("kept", on)},
			{PreConfig: l.reset, Config: l.config("kept", on), Destroy: true, ExpectError: protected},
			intact,
			{Config: l.config("other", on), ExpectError: protected},
			intact,
			{Config: l.config("other", lifecycle), ExpectError: protected},
			intact,
			// Lifting the protection in the apply that destroys is too late.
			{Config: l.config("other", nil), ExpectError: protected},
			intact,
			{Config: l.config("kept", nil)},
		},
	})
}

func TestProtectionOnTheClusterAloneIsEnough(t *testing.T) {
	l := useLab(t)
	protect := func(on string) func() {
		return func() {
			l.reset()
			l.patchMachine("guarded", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"dbaas.opencloud.wso2.com/deletion-protection": on}}})
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("guarded"),
		Steps: []resource.TestStep{
			{Config: l.config("guarded", nil)},
			{PreConfig: protect("true"), Config: l.config("guarded", nil), Destroy: true, ExpectError: regexp.MustCompile("protected")},
			{PreConfig: protect("false"), Config: l.config("guarded", nil), Check: l.untouched},
		},
	})
}

func TestTaintedInstanceWithDataIsNotReplaced(t *testing.T) {
	l := useLab(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("tainted"),
		Steps: []resource.TestStep{
			{Config: l.config("tainted", nil)},
			{PreConfig: l.reset, Config: l.config("tainted", nil), Taint: []string{it}, ExpectError: regexp.MustCompile(`terraform untaint`)},
			{
				// Its resource is still tainted, and a destroy that is asked for is none that a taint asks for.
				Config: l.config("tainted", nil), Destroy: true,
			},
		},
	})
	if sent := l.requests("pg-tainted", "DELETE"); len(sent) == 0 {
		t.Error("the destroy that was asked for sent nothing")
	}
}

func TestTaintWithCreateBeforeDestroyChangesNothing(t *testing.T) {
	l := useLab(t)
	config := l.config("ordered", args{"lifecycle {": "\n    create_before_destroy = true\n  }"})
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("ordered"),
		Steps: []resource.TestStep{
			{Config: config},
			{PreConfig: l.reset, Config: config, Taint: []string{it}, ExpectError: regexp.MustCompile(`(?s)exists.*terraform\s+import`)},
		},
	})
}

func TestRenameReplacesAnUnprotectedInstance(t *testing.T) {
	l := useLab(t)
	for story, lifecycle := range map[string]args{"destroy first": nil, "create first": {"lifecycle {": "\n    create_before_destroy = true\n  }"}} {
		t.Run(story, func(t *testing.T) {
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: factories(),
				CheckDestroy:             l.nothingLeft("before", "after"),
				Steps: []resource.TestStep{
					{Config: l.config("before", lifecycle)},
					{
						Config: l.config("after", lifecycle),
						Check: resource.ComposeAggregateTestCheckFunc(
							resource.TestCheckResourceAttr(it, "id", namespace+"/after"),
							func(s *terraform.State) error { return l.nothingLeft("before")(s) },
						),
					},
				},
			})
		})
	}
}

func TestHalfMadeInstanceIsReplacedOnce(t *testing.T) {
	l := useLab(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("halfmade"),
		Steps: []resource.TestStep{
			{
				PreConfig:   func() { l.knob(namespace+".pg-halfmade.never-ready", "true") },
				Config:      l.config("halfmade", args{"timeouts": `{ create = "12s" }`, "deletion_protection": "true"}),
				ExpectError: regexp.MustCompile(`(?s)terraform untaint`),
			},
			{
				PreConfig: func() { l.knob(namespace+".pg-halfmade.never-ready", "") },
				// Another value than the half-made one has, as after a correction.
				Config: l.config("halfmade", args{"db_name": `"corrected"`}),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(it, plancheck.ResourceActionReplace),
				}},
				Check: resource.TestCheckResourceAttr(it, "status", "available"),
			},
		},
	})
}
