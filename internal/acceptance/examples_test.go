package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// example is one of the repository's complete examples, copied with what it
// refers to, and used as somebody does who has no files and an empty home: all
// that the provider needs is in the environment.
func example(t *testing.T, l *lab, name string) *cli {
	t.Helper()
	top := t.TempDir()
	must(t, os.CopyFS(top, os.DirFS("../../examples")))
	kubeconfig, err := os.ReadFile(l.kubeconfig)
	must(t, err)
	c := processCLI(t, filepath.Join(top, name), "HOME="+t.TempDir(), "KUBE_CONFIG_PATH=", "KUBECONFIG=", "DBAAS_KUBECONFIG="+string(kubeconfig))
	c.must("get", "-no-color")
	return c
}

// The complete examples work as they are: applied, planned again, destroyed.
func TestCompleteExamples(t *testing.T) {
	l := useLab(t)
	for name, test := range map[string]struct {
		instances []string
		says      string // in the outputs
	}{
		"minimal":    {[]string{"minimal"}, "sslmode=verify-full"},
		"production": {[]string{"prod-orders"}, "https://grafana.example.com/d/dbaas-postgresql?var-namespace=tenant-acme&var-instance=prod-orders"},
		"several":    {[]string{"several-orders", "several-billing"}, "several-billing"},
		"composed":   {[]string{"composed"}, "verify-full"},
	} {
		t.Run(name, func(t *testing.T) {
			c := example(t, l, "complete/"+name)
			flags := []string{"-input=false", "-no-color", "-var-file=lab.tfvars"}
			apply := append([]string{"apply", "-auto-approve"}, flags...)
			destroy := append([]string{"destroy", "-auto-approve"}, flags...)
			if out := c.must(apply...); !strings.Contains(out, test.says) {
				t.Errorf("the outputs do not say %q: %s", test.says, out)
			}
			if code, out := c.run(append([]string{"plan", "-detailed-exitcode"}, flags...)...); code != 0 {
				t.Errorf("a second plan: exit code %d\n%s", code, out)
			}
			if name == "production" {
				if code, out := c.run(destroy...); code == 0 || !strings.Contains(out, "deletion_protection") {
					t.Errorf("destroy of what is protected: exit code %d\n%s", code, out)
				}
				free := []string{"-var=deletion_protection=false", "-var=deletion_policy=delete"}
				apply, destroy = append(apply, free...), append(destroy, free...)
				c.must(apply...)
			}
			c.must(destroy...)
			must(t, l.nothingLeft(test.instances...)(nil))
		})
	}
}

// The module's own tests need no cluster.
func TestModuleHasTests(t *testing.T) {
	c := example(t, useLab(t), "modules/postgres")
	if out := c.must("test", "-no-color"); !strings.Contains(out, "3 passed, 0 failed") {
		t.Error(out)
	}
}
