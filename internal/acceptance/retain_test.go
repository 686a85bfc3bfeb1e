package acceptance

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRetainedDataIsTakenOver(t *testing.T) {
	l := useLab(t)
	var before map[string]string
	var uid string
	volume := func() string {
		claim, err := l.kube.CoreV1().PersistentVolumeClaims(namespace).Get(context.Background(), "pg-retained-data", metav1.GetOptions{})
		must(t, err)
		return string(claim.UID)
	}
	keep := args{"deletion_policy": `"retain"`, "db_name": `"app"`}
	with := func(changes args) args {
		all := args{}
		for _, from := range []args{keep, changes} {
			maps.Copy(all, from)
		}
		return all
	}
	refused := func(changes args, text string) resource.TestStep {
		return resource.TestStep{Config: l.config("retained", with(changes)), PlanOnly: true, ExpectError: regexp.MustCompile(text)}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("retained"),
		Steps: []resource.TestStep{
			{Config: l.config("retained", keep), Check: func(s *terraform.State) error {
				before, uid = s.RootModule().Resources[it].Primary.Attributes, volume()
				return nil
			}},
			{Config: l.config("retained", keep), Destroy: true},
			refused(args{"engine_version": `"14"`}, `(?s)engine_version.*was\s+made\s+with`),
			refused(args{"db_name": `"other"`}, `(?s)db_name.*was\s+made\s+with`),
			refused(args{"master_username": `"other"`}, `(?s)master_username.*was\s+made\s+with`),
			refused(args{"port": `5433`}, `(?s)port.*was\s+made\s+with`),
			refused(args{"allocated_storage": `5`}, `(?s)allocated_storage.*was\s+made\s+with`),
			{
				Config: l.config("retained", with(args{"instance_class": `"db.t3.small"`, "allocated_storage": "12", "deletion_policy": ""})),
				Check: resource.ComposeAggregateTestCheckFunc(
					attr("status", "available"), attr("allocated_storage", "12"), attr("memory_mib", "2048"),
					func(s *terraform.State) error {
						after := s.RootModule().Resources[it].Primary.Attributes
						for _, kept := range []string{"master_password", "ca_cert_pem", "instance_id", "address"} {
							if before[kept] != after[kept] {
								return fmt.Errorf("%s has changed", kept)
							}
						}
						if volume() != uid {
							return fmt.Errorf("the data volume is another one")
						}
						return nil
					},
				),
			},
		},
	})
}
