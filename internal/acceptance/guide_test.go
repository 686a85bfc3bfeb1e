package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
)

// guide runs a command line as the DBaaS operator's usage guide has it, and
// returns what it prints. Whoever looks around may list; the provider's account
// may not.
func (l *lab) guide(line string) string {
	l.t.Helper()
	command := exec.CommandContext(l.t.Context(), "bash", "-o", "pipefail", "-c", line)
	command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(l.dir, "kubeconfig"))
	out, err := command.Output()
	if err != nil {
		l.t.Fatalf("%s: %v", line, err)
	}
	return string(out)
}

func TestGuideReadsAnInstanceWithKubectl(t *testing.T) {
	l := useLab(t)
	const all = "kubectl -n tenant-acme get vm,vmi,dv,pvc,secret,svc,servicemonitor -l dbaas.opencloud.wso2.com/instance=guide -o name"
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy: resource.ComposeTestCheckFunc(l.nothingLeft("guide"), func(*terraform.State) error {
			if left := l.guide(all); left != "" {
				return fmt.Errorf("after the destroy kubectl prints %q", left)
			}
			return nil
		}),
		Steps: []resource.TestStep{{
			Config: l.config("guide", args{"master_username": `"orders_admin"`}),
			Check: func(s *terraform.State) error {
				attributes := s.RootModule().Resources[it].Primary.Attributes
				for line, want := range map[string]string{
					`kubectl -n tenant-acme get vm pg-guide -o jsonpath='{.status.printableStatus}'`:                                     "Running",
					`kubectl -n tenant-acme get vmi pg-guide -o jsonpath='{.status.phase}{"\t"}{.status.interfaces[*].ipAddress}{"\n"}'`: "Running\t" + attributes["address"] + "\n",

					`SECRET=pg-guide-credentials
					kubectl -n tenant-acme get secret "$SECRET" -o jsonpath='{.data.admin_user}' | base64 -d ; echo`: "orders_admin\n",
					`SECRET=pg-guide-credentials
					kubectl -n tenant-acme get secret "$SECRET" -o jsonpath='{.data.admin_password}' | base64 -d ; echo`: attributes["master_password"] + "\n",
					// The guide takes the CA from the custom resource, which this provider has none of.
					`kubectl -n tenant-acme get secret pg-guide-credentials -o jsonpath='{.data.ca_cert}' | base64 -d`: attributes["ca_cert_pem"],

					`kubectl -n tenant-acme get dv -o wide`: "",
					all: strings.Join([]string{
						"virtualmachine.kubevirt.io/pg-guide", "virtualmachineinstance.kubevirt.io/pg-guide",
						"persistentvolumeclaim/pg-guide-data", "persistentvolumeclaim/pg-guide-os",
						"secret/pg-guide-cloudinit", "secret/pg-guide-credentials", "",
					}, "\n"),
				} {
					if got := l.guide(line); got != want {
						return fmt.Errorf("%s\nprints %q, want %q", line, got, want)
					}
				}
				return nil
			},
		}},
	})
}
