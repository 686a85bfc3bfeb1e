package acceptance

import (
	"context"
	"fmt"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// postVM is the request that makes the virtual machine.
const postVM = "/namespaces/" + namespace + "/virtualmachines(\\?|$)"

func TestRefusedMachineKeepsItsSecretsForTheNextApply(t *testing.T) {
	l := useLab(t)
	var first *corev1.Secret
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("retried"),
		Steps: []resource.TestStep{
			{
				PreConfig:   func() { l.inject(rule{Method: "POST", Path: postVM, Times: -1, Action: "answer", Status: 503}) },
				Config:      l.config("retried", args{"timeouts": `{ create = "8s" }`}),
				ExpectError: regexp.MustCompile(`(?s)Of this instance only\s+Secrets stand.*pg-retried-credentials`),
			},
			{
				PreConfig: func() {
					if l.machine("retried") != nil {
						t.Error("a virtual machine stands")
					}
					first = l.credentials("retried")
					l.reset()
				},
				Config: l.config("retried", nil),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					// Not a replace: the failed create left no state.
					plancheck.ExpectResourceAction(it, plancheck.ResourceActionCreate),
				}},
				Check: resource.ComposeAggregateTestCheckFunc(
					value("ca_cert_pem", func() string { return string(first.Data["ca_cert"]) }),
					value("master_password", func() string { return string(first.Data["admin_password"]) }),
					value("instance_id", func() string { return string(first.Data["instance_id"]) }),
					func(*terraform.State) error { return l.postedOnce() },
				),
			},
		},
	})
}

// postedOnce says whether exactly one POST of a VM took effect.
func (l *lab) postedOnce() error {
	posts := l.requests("/virtualmachines", "POST")
	created := 0
	for _, r := range posts {
		if r.Upstream == 201 {
			created++
		}
	}
	if created != 1 {
		return fmt.Errorf("%d virtual machines were created: %v", created, posts)
	}
	return nil
}

func TestLostAnswerIsSettledByTheSameApply(t *testing.T) {
	l := useLab(t)
	for story, lost := range map[string]rule{
		"connection cut":  {Method: "POST", Path: postVM, Action: "cut", Effect: true},
		"gateway timeout": {Method: "POST", Path: postVM, Action: "answer", Status: 504, Effect: true},
		"never arrived":   {Method: "POST", Path: postVM, Action: "cut"},
	} {
		t.Run(story, func(t *testing.T) {
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: factories(),
				CheckDestroy:             l.nothingLeft("settled"),
				Steps: []resource.TestStep{{
					PreConfig: func() { l.reset(); l.inject(lost) },
					Config:    l.config("settled", nil),
					Check: resource.ComposeAggregateTestCheckFunc(
						resource.TestCheckResourceAttr(it, "status", "available"),
						func(*terraform.State) error { return l.postedOnce() },
					),
				}},
			})
		})
	}
}

func TestMalformedSecretIsNeitherRepairedNorUsed(t *testing.T) {
	l := useLab(t)
	for _, key := range []string{"admin_user", "admin_password", "ca_cert", "ca_key", "instance_id", "mac_address"} {
		t.Run(key, func(t *testing.T) {
			t.Cleanup(func() { l.removeSecrets("malformed") })
			var broken *corev1.Secret
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: factories(),
				Steps: []resource.TestStep{
					{
						PreConfig: func() {
							l.reset()
							l.inject(rule{Method: "POST", Path: postVM, Times: -1, Action: "answer", Status: 503})
						},
						Config:      l.config("malformed", args{"timeouts": `{ create = "5s" }`}),
						ExpectError: regexp.MustCompile(`Secrets stand`),
					},
					{
						PreConfig: func() {
							l.reset()
							broken = l.credentials("malformed")
							delete(broken.Data, key)
							var err error
							broken, err = l.kube.CoreV1().Secrets(namespace).Update(context.Background(), broken, metav1.UpdateOptions{})
							must(t, err)
						},
						Config:      l.config("malformed", nil),
						ExpectError: regexp.MustCompile(`(?s)pg-malformed-credentials.*` + key),
					},
				},
			})
			if diff := cmp.Diff(broken, l.credentials("malformed")); diff != "" {
				t.Errorf("the Secret was changed:\n%s", diff)
			}
			if l.machine("malformed") != nil {
				t.Error("a virtual machine stands")
			}
			if writes := l.requests("", "POST", "PUT", "PATCH", "DELETE"); len(writes) > 0 {
				t.Errorf("written: %v", writes)
			}
		})
	}
}

func TestFailedCleaningIsFinishedByTheNextApply(t *testing.T) {
	l := useLab(t)
	secrets := "/namespaces/" + namespace + "/secrets/pg-unclean-"
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("unclean"),
		Steps: []resource.TestStep{
			{
				// The credentials Secret's last patch removes the CA's key.
				PreConfig: func() {
					l.inject(rule{Method: "PATCH", Path: secrets + "credentials", Times: -1, Action: "answer", Status: 403})
				},
				Config:             l.config("unclean", nil),
				Check:              resource.TestCheckResourceAttr(it, "status_reason", "BootstrapMaterialPresent"),
				ExpectNonEmptyPlan: true,
			},
			{
				PreConfig: l.reset,
				Config:    l.config("unclean", nil),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(it, plancheck.ResourceActionUpdate),
				}},
				Check: func(s *terraform.State) error {
					if l.credentials("unclean").Data["ca_key"] != nil {
						return fmt.Errorf("the CA's key is still in the Secret")
					}
					return resource.TestCheckNoResourceAttr(it, "status_reason")(s)
				},
			},
		},
	})
}
