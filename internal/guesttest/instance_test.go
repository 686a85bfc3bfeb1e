package guesttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
)

// args are arguments of the resource, in Terraform's language.
type args = map[string]string

// An instance is a root module with one dbaas_instance. Terraform and the built
// provider run as they do for a user, with the rights of the lab's tenant.
type instance struct {
	*lab
	name      string
	folder    string
	arguments args
}

// newInstance makes the module; nothing is applied yet. At the end of the test
// the instance is destroyed.
func (l *lab) newInstance(t *testing.T, name string, arguments args) *instance {
	t.Helper()
	i := &instance{lab: l, name: name, folder: t.TempDir(), arguments: args{
		"name": quote(name), "namespace": quote(namespace), "instance_class": `"db.t3.micro"`, "allocated_storage": "1",
		"network_ref": `"default/vm-net-100"`, "engine_version": `"15"`, "os_image": `"default/debian-12"`,
	}}
	maps.Copy(i.arguments, arguments)
	bin, err := filepath.Abs("../../bin")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(i.folder, "terraformrc"),
		fmt.Appendf(nil, "provider_installation {\n  dev_overrides {\n    \"registry.terraform.io/wso2/dbaas\" = %q\n    \"registry.opentofu.org/wso2/dbaas\" = %[1]q\n  }\n}\n", bin), 0o600))
	t.Cleanup(func() { i.remove(t) })
	return i
}

func quote(s string) string { return fmt.Sprintf("%q", s) }

// hcl quotes a text that may hold what Terraform would take for a template.
func hcl(s string) string {
	text, _ := json.Marshal(s) // a string marshals always
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(string(text))
}

// with changes arguments; an empty value takes one out.
func (i *instance) with(arguments args) *instance {
	maps.Copy(i.arguments, arguments)
	return i
}

func (i *instance) config() string {
	var b strings.Builder
	fmt.Fprintf(&b, "terraform {\n  required_providers {\n    dbaas = { source = \"wso2/dbaas\" }\n  }\n}\n\nprovider \"dbaas\" {\n  config_path = %q\n}\n\n", filepath.Join(i.dir, "tenant.kubeconfig"))
	b.WriteString("resource \"dbaas_instance\" \"it\" {\n")
	for _, name := range slices.Sorted(maps.Keys(i.arguments)) {
		if value := i.arguments[name]; value != "" {
			fmt.Fprintf(&b, "  %s = %s\n", name, value)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// terraform runs a command in the module's folder.
func (i *instance) terraform(ctx context.Context, arguments ...string) (string, error) {
	cmd, err := i.command(ctx, arguments...)
	if err != nil {
		return "", err
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (i *instance) command(ctx context.Context, arguments ...string) (*exec.Cmd, error) {
	if err := os.WriteFile(filepath.Join(i.folder, "main.tf"), []byte(i.config()), 0o600); err != nil {
		return nil, err
	}
	program := "terraform"
	if _, err := exec.LookPath(program); err != nil {
		program = "tofu"
	}
	cmd := exec.CommandContext(ctx, program, arguments...)
	cmd.Dir = i.folder
	cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+filepath.Join(i.folder, "terraformrc"), "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
	return cmd, nil
}

// killed runs a command, and kills Terraform and the provider without a chance
// to clean up when the moment has come.
func (i *instance) killed(t *testing.T, moment func() bool, arguments ...string) {
	t.Helper()
	cmd, err := i.command(t.Context(), arguments...)
	must(t, err)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(t, cmd.Start())
	until(t, func(context.Context) error {
		if !moment() {
			return errors.New("the moment to kill has not come")
		}
		return nil
	})
	must(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL))
	if cmd.Wait() == nil {
		t.Error("the run ended before it was killed")
	}
}

// apply makes the instance what its arguments say.
func (i *instance) apply(t *testing.T) {
	t.Helper()
	if out, err := i.terraform(t.Context(), "apply", "-auto-approve", "-input=false", "-no-color"); err != nil {
		t.Fatalf("terraform apply: %v\n%s", err, out)
	}
}

// refused wants an apply to fail, with all of the texts in what it prints.
func (i *instance) refused(t *testing.T, texts ...string) {
	t.Helper()
	out, err := i.terraform(t.Context(), "apply", "-auto-approve", "-input=false", "-no-color")
	if err == nil {
		t.Fatal("terraform apply succeeded")
	}
	// Terraform wraps lines and draws a frame.
	plain := strings.Join(strings.FieldsFunc(out, func(r rune) bool { return r == ' ' || r == '\n' || r == '│' }), " ")
	for _, text := range texts {
		if !strings.Contains(plain, text) {
			t.Errorf("terraform apply does not say %q:\n%s", text, out)
		}
	}
}

// unchanged wants a plan to be empty.
func (i *instance) unchanged(t *testing.T) {
	t.Helper()
	if out, err := i.terraform(t.Context(), "plan", "-detailed-exitcode", "-input=false", "-no-color"); err != nil {
		t.Errorf("terraform plan: %v\n%s", err, out)
	}
}

// attributes are those in Terraform's state.
func (i *instance) attributes(t *testing.T) map[string]any {
	t.Helper()
	out, err := i.terraform(t.Context(), "show", "-json")
	must(t, err)
	var state struct {
		Values struct {
			RootModule struct {
				Resources []struct{ Values map[string]any }
			} `json:"root_module"`
		}
	}
	must(t, json.Unmarshal([]byte(out), &state))
	if len(state.Values.RootModule.Resources) != 1 {
		t.Fatal("the instance is not in Terraform's state")
	}
	return state.Values.RootModule.Resources[0].Values
}

// destroy ends the instance before the test does.
func (i *instance) destroy(t *testing.T) {
	t.Helper()
	if out, err := i.terraform(t.Context(), "destroy", "-auto-approve", "-input=false", "-no-color"); err != nil {
		t.Fatalf("terraform destroy: %v\n%s", err, out)
	}
}

// remove destroys the instance, and what Terraform does not know of it.
func (i *instance) remove(t *testing.T) {
	ctx := context.Background() // the test's own is over
	if out, err := i.terraform(ctx, "destroy", "-auto-approve", "-input=false", "-no-color"); err != nil {
		t.Errorf("terraform destroy: %v\n%s", err, out)
	}
	for _, name := range []string{"pg-" + i.name + "-credentials", "pg-" + i.name + "-cloudinit"} {
		err := i.dynamic.Resource(secrets()).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{})
		if err == nil {
			t.Logf("the Secret %s was left", name)
		}
	}
}

// document changes the configuration in the document that stays, as a later
// provider would, and keeps the instance-id.
func (i *instance) document(t *testing.T, change func(*cloudinit.Config)) {
	t.Helper()
	name := "pg-" + i.name + "-cloudinit"
	config, err := cloudinit.ParseUserData(i.secret(t, name, "userdata"))
	must(t, err)
	change(&config)
	document, err := cloudinit.UserData(config, nil)
	must(t, err)
	i.patch(t, secrets(), name, map[string]any{"data": map[string]any{"userdata": document}})
}
