// Package acceptance tells the stories of the provider through a real
// Terraform, against the lab's cluster. Every request goes through the lab's
// fault proxy, which can disturb it and records it.
package acceptance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wso2/terraform-provider-dbaas/internal/faultproxy"
	"github.com/wso2/terraform-provider-dbaas/internal/provider"
)

// namespace is where the lab's tenant may have instances.
const namespace = "tenant-acme"

// deleteWithin bounds the wait for something to go.
const deleteWithin = 2 * time.Minute

// lab is a running lab, seen by its administrator.
type lab struct {
	t   *testing.T
	dir string
	// kubeconfig is the tenant's, behind the fault proxy.
	kubeconfig string
	kube       kubernetes.Interface
	dynamic    dynamic.Interface
	proxy      *faultproxy.Proxy
}

// TestMain keeps out what the user's own environment and configuration say.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "dbaas-acceptance-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	empty := filepath.Join(dir, "terraformrc")
	buildProvider = sync.OnceValues(func() (string, error) { return build(dir) })
	if err := errors.Join(os.WriteFile(empty, nil, 0o600),
		os.Setenv("TF_ACC", "1"), os.Setenv("CHECKPOINT_DISABLE", "1"), os.Setenv("TF_CLI_CONFIG_FILE", empty)); err != nil {
		panic(err)
	}
	return m.Run()
}

// useLab finds the lab that the environment names, for a story that others may
// run beside: its fault proxy is its own.
func useLab(t *testing.T) *lab {
	t.Helper()
	l := useLabAlone(t)
	t.Parallel()
	return l
}

// useLabAlone is useLab for a story that would disturb others.
func useLabAlone(t *testing.T) *lab {
	t.Helper()
	dir := os.Getenv("DBAAS_LAB_DIR")
	if dir == "" {
		t.Skip("needs a lab: run `make test-acceptance`, or `make lab-up` and then DBAAS_LAB_DIR=$PWD/.lab go test ./internal/acceptance")
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	must(t, err)
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{} // of the age of Endpoints, at each look
	kube, err := kubernetes.NewForConfig(config)
	must(t, err)
	dyn, err := dynamic.NewForConfig(config)
	must(t, err)
	proxy, err := faultproxy.Start(labProgram(t), dir, filepath.Join(t.TempDir(), "proxy.kubeconfig"))
	must(t, err)
	t.Cleanup(func() { must(t, proxy.Close()) })
	return &lab{t: t, dir: dir, kubeconfig: proxy.Kubeconfig, proxy: proxy, kube: kube, dynamic: dyn}
}

func labProgram(t *testing.T) string {
	t.Helper()
	program, err := filepath.Abs("../../bin/lab")
	must(t, err)
	return program
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// factories run the provider inside the test.
func factories() map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){
		"dbaas": providerserver.NewProtocol6WithError(provider.New("test")()),
	}
}

// config is a root module: the provider as the lab's tenant behind the fault
// proxy, and one instance. Arguments replace or add to the shortest ones; an
// empty value leaves one out.
func (l *lab) config(name string, arguments map[string]string) string {
	all := map[string]string{
		"name": quote(name), "namespace": quote(namespace), "instance_class": `"db.t3.micro"`, "allocated_storage": "10",
		"network_ref": `"default/vm-net-100"`, "engine_version": `"15"`, "os_image": `"default/debian-12"`,
	}
	maps.Copy(all, arguments)
	var b strings.Builder
	fmt.Fprintf(&b, "provider \"dbaas\" {\n  config_path = %q\n}\n\nresource \"dbaas_instance\" \"it\" {\n", l.kubeconfig)
	for argument, value := range all {
		switch {
		case strings.HasSuffix(argument, "{"):
			fmt.Fprintf(&b, "  %s %s\n", argument, value)
		case value != "":
			fmt.Fprintf(&b, "  %s = %s\n", argument, value)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

func quote(s string) string { return fmt.Sprintf("%q", s) }

// args are arguments for config.
type args = map[string]string

// rule disturbs requests; request is one that was recorded.
type (
	rule    = faultproxy.Rule
	request = faultproxy.Request
)

func (l *lab) inject(r rule) { l.t.Helper(); must(l.t, l.proxy.Inject(r)) }

// reset forgets rules and record.
func (l *lab) reset() { l.t.Helper(); must(l.t, l.proxy.Reset()) }

// requests are those recorded of these methods whose path contains a text.
func (l *lab) requests(path string, methods ...string) []request {
	l.t.Helper()
	all, err := l.proxy.Record()
	must(l.t, err)
	var chosen []request
	for _, r := range all {
		if strings.Contains(r.Path, path) && strings.Contains(" "+strings.Join(methods, " ")+" ", " "+r.Method+" ") {
			chosen = append(chosen, r)
		}
	}
	return chosen
}

// tool runs a command of the lab.
func (l *lab) tool(arguments ...string) {
	l.t.Helper()
	all := append([]string{arguments[0], "-dir", l.dir}, arguments[1:]...)
	out, err := exec.CommandContext(l.t.Context(), labProgram(l.t), all...).CombinedOutput()
	if err != nil {
		l.t.Fatalf("lab %s: %v: %s", strings.Join(all, " "), err, out)
	}
}

// skipping adds to why a Terraform is too old for a story what runs it.
type skipping struct {
	tfversion.TerraformVersionCheck
}

// CheckTerraformVersion implements tfversion.TerraformVersionCheck.
func (s skipping) CheckTerraformVersion(ctx context.Context, req tfversion.CheckTerraformVersionRequest, resp *tfversion.CheckTerraformVersionResponse) {
	s.TerraformVersionCheck.CheckTerraformVersion(ctx, req, resp)
	if resp.Skip != "" {
		resp.Skip += "; with a newer terraform on the PATH: make test-acceptance"
	}
}
