package acceptance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/wso2/terraform-provider-dbaas/internal/provider"
)

// cli is Terraform, or OpenTofu, in a folder of its own, for what the testing
// framework has no step for. The provider runs inside the test.
type cli struct {
	t           *testing.T
	dir         string
	environment []string
}

// newCLI initializes a folder with one root module.
func newCLI(t *testing.T, module string) *cli {
	t.Helper()
	c := &cli{t: t, dir: t.TempDir(), environment: serve(t)}
	c.write(module)
	if code, out := c.run("init", "-input=false", "-no-color"); code != 0 {
		t.Fatalf("init: %s", out)
	}
	return c
}

// newProcessCLI is a processCLI that logs all that Terraform and the provider
// can log.
func newProcessCLI(t *testing.T, module string, environment ...string) *cli {
	t.Helper()
	c := processCLI(t, t.TempDir(), environment...)
	c.environment = append(c.environment, "TF_LOG=trace", "TF_LOG_PATH="+filepath.Join(c.dir, "trace.log"))
	c.write(module)
	return c
}

// buildProvider builds it once, and returns the program's path.
var buildProvider func() (string, error)

func build(dir string) (string, error) {
	program := filepath.Join(dir, "terraform-provider-dbaas")
	command := exec.Command("go", "build", "-o", program, "../..") //nolint:noctx // for all tests
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the provider: %w\n%s", err, out)
	}
	return program, nil
}

// processCLI is a cli whose provider is a process of its own, as a user's is.
func processCLI(t *testing.T, dir string, environment ...string) *cli {
	t.Helper()
	program, err := buildProvider()
	must(t, err)
	settings := filepath.Join(t.TempDir(), "terraformrc")
	must(t, os.WriteFile(settings, fmt.Appendf(nil, "provider_installation {\n  dev_overrides {\n    %q = %q\n  }\n  direct {}\n}\n",
		address("wso2/dbaas"), filepath.Dir(program)), 0o600))
	return &cli{t: t, dir: dir, environment: append([]string{"TF_CLI_CONFIG_FILE=" + settings}, environment...)}
}

func (c *cli) write(module string) {
	c.t.Helper()
	must(c.t, os.WriteFile(filepath.Join(c.dir, "main.tf"), []byte(module), 0o600))
}

// program is what plugin-testing runs as well.
func program() string {
	if path := os.Getenv("TF_ACC_TERRAFORM_PATH"); path != "" {
		return path
	}
	return "terraform"
}

// run returns the exit code, and all that was printed.
func (c *cli) run(arguments ...string) (int, string) {
	c.t.Helper()
	command := exec.CommandContext(c.t.Context(), program(), arguments...)
	command.Dir = c.dir
	command.Env = append(os.Environ(), c.environment...)
	out, err := command.CombinedOutput()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		return exit.ExitCode(), string(out)
	}
	must(c.t, err)
	return 0, string(out)
}

// apply, destroy and the like: what has to succeed.
func (c *cli) must(arguments ...string) string {
	c.t.Helper()
	code, out := c.run(arguments...)
	if code != 0 {
		c.t.Fatalf("%v: exit code %d\n%s", arguments, code, out)
	}
	return out
}

// attributes are those of a resource in the state.
func (c *cli) attributes(address string) map[string]any {
	c.t.Helper()
	var state struct {
		Values struct {
			Root struct {
				Resources []struct {
					Address string         `json:"address"`
					Tainted bool           `json:"tainted"`
					Values  map[string]any `json:"values"`
				} `json:"resources"`
			} `json:"root_module"`
		} `json:"values"`
	}
	must(c.t, json.Unmarshal([]byte(c.must("show", "-json")), &state))
	for _, r := range state.Values.Root.Resources {
		if r.Address == address {
			r.Values["(tainted)"] = r.Tainted
			return r.Values
		}
	}
	return nil
}

// serve runs the provider until the test ends, and returns what tells
// Terraform to use it.
func serve(t *testing.T) []string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	configs, closed := make(chan *plugin.ReattachConfig), make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		failed <- tf6server.Serve(address("wso2/dbaas"),
			func() tfprotov6.ProviderServer { return providerserver.NewProtocol6(provider.New("test")())() },
			tf6server.WithDebug(ctx, configs, closed), tf6server.WithLoggingSink(t))
	}()
	t.Cleanup(func() { stop(); <-closed })
	select {
	case err := <-failed:
		t.Fatal(err)
	case c := <-configs:
		attach, err := json.Marshal(map[string]any{address("wso2/dbaas"): map[string]any{
			"Protocol": c.Protocol, "ProtocolVersion": c.ProtocolVersion, "Pid": c.Pid, "Test": true,
			"Addr": map[string]any{"Network": c.Addr.Network(), "String": c.Addr.String()},
		}})
		must(t, err)
		return []string{fmt.Sprintf("TF_REATTACH_PROVIDERS=%s", attach)}
	}
	return nil
}

// address is the whole one of a provider: the registry is not the same for
// Terraform and OpenTofu.
func address(source string) string {
	if host := os.Getenv("TF_ACC_PROVIDER_HOST"); host != "" {
		return host + "/" + source
	}
	return "registry.terraform.io/" + source
}
