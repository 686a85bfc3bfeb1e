// Package acceptance tells the stories of the provider through a real
// Terraform, against the lab's cluster. Every request goes through the lab's
// fault proxy, which can disturb it and records it.
package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
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
	control    string // URL of the fault proxy's control
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
	l := &lab{t: t, dir: dir, kubeconfig: filepath.Join(t.TempDir(), "proxy.kubeconfig"), kube: kube, dynamic: dyn}
	l.startProxy()
	return l
}

// startProxy runs a fault proxy until the test ends.
func (l *lab) startProxy() {
	l.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	proxy := exec.CommandContext(ctx, labProgram(l.t), "proxy", "-dir", l.dir, "-extra")
	proxy.Stderr = os.Stderr
	out, err := proxy.StdoutPipe()
	must(l.t, err)
	must(l.t, proxy.Start())
	l.t.Cleanup(func() { stop(); _ = proxy.Wait() }) // it says only that it was stopped
	var serves struct{ Ports map[string]int }
	must(l.t, json.NewDecoder(out).Decode(&serves))
	l.control = fmt.Sprintf("http://127.0.0.1:%d", serves.Ports["proxy-control"])
	config, err := clientcmd.LoadFromFile(filepath.Join(l.dir, "proxy.kubeconfig"))
	must(l.t, err)
	for _, cluster := range config.Clusters {
		cluster.Server = fmt.Sprintf("https://127.0.0.1:%d", serves.Ports["proxy"])
	}
	must(l.t, clientcmd.WriteToFile(*config, l.kubeconfig))
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

// rule disturbs requests; see the lab's fault proxy.
type rule struct {
	Method string `json:"method,omitempty"`
	Path   string `json:"path,omitempty"`
	Times  int    `json:"times,omitempty"`
	Action string `json:"action"`
	Status int    `json:"status,omitempty"`
	Effect bool   `json:"effect,omitempty"`
}

// request is one line of the proxy's record.
type request struct {
	Method   string `json:"method"`
	Path     string `json:"path"`
	Upstream int    `json:"upstream"` // what the server answered, 0 if it was not asked
	Fault    string `json:"fault"`
}

func (l *lab) inject(r rule) {
	l.t.Helper()
	body, err := json.Marshal(r)
	must(l.t, err)
	l.tell(http.MethodPost, "/rules", body)
}

// reset forgets rules and record.
func (l *lab) reset() { l.t.Helper(); l.tell(http.MethodPost, "/reset", nil) }

// requests are those recorded of these methods whose path contains a text.
func (l *lab) requests(path string, methods ...string) []request {
	l.t.Helper()
	var all, chosen []request
	must(l.t, json.Unmarshal(l.tell(http.MethodGet, "/record", nil), &all))
	for _, r := range all {
		if strings.Contains(r.Path, path) && strings.Contains(" "+strings.Join(methods, " ")+" ", " "+r.Method+" ") {
			chosen = append(chosen, r)
		}
	}
	return chosen
}

func (l *lab) tell(method, path string, body []byte) []byte {
	l.t.Helper()
	// The test's own context is over when its cleanup runs.
	req, err := http.NewRequest(method, l.control+path, bytes.NewReader(body)) //nolint:noctx // see above
	must(l.t, err)
	resp, err := http.DefaultClient.Do(req)
	must(l.t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	must(l.t, err)
	if resp.StatusCode != http.StatusOK {
		l.t.Fatalf("%s %s of the fault proxy: %s: %s", method, path, resp.Status, answer)
	}
	return answer
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
