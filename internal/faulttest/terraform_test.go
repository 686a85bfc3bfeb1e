package faulttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// terraform is the real one in a folder of its own, with the provider as a
// process of its own.
type terraform struct {
	dir         string
	environment []string
}

// program is what plugin-testing runs as well.
func program() string {
	if path := os.Getenv("TF_ACC_TERRAFORM_PATH"); path != "" {
		return path
	}
	return "terraform"
}

// source is the provider's whole address: the registry is not the same for
// Terraform and OpenTofu.
func source() string {
	if host := os.Getenv("TF_ACC_PROVIDER_HOST"); host != "" {
		return host + "/wso2/dbaas"
	}
	return "registry.terraform.io/wso2/dbaas"
}

// newTerraform makes a folder in which Terraform uses the provider of this
// source tree, built into binary.
func newTerraform(dir, binary string) (*terraform, error) {
	settings := filepath.Join(dir, "terraformrc")
	text := fmt.Appendf(nil, "provider_installation {\n  dev_overrides {\n    %q = %q\n  }\n  direct {}\n}\n", source(), filepath.Dir(binary))
	return &terraform{dir: dir, environment: append(os.Environ(),
		"TF_CLI_CONFIG_FILE="+settings, "CHECKPOINT_DISABLE=1")}, os.WriteFile(settings, text, 0o600)
}

// buildProvider builds the provider's program into a folder.
func buildProvider(dir string) (string, error) {
	binary := filepath.Join(dir, "terraform-provider-dbaas")
	command := exec.Command("go", "build", "-o", binary, "../..") //nolint:noctx // for all tests
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the provider: %w\n%s", err, out)
	}
	return binary, nil
}

// write makes the root module: one instance behind the proxy.
func (t *terraform) write(kubeconfig string, config args) error {
	module, err := json.Marshal(map[string]any{
		"terraform": map[string]any{"required_providers": map[string]any{"dbaas": map[string]any{"source": "wso2/dbaas"}}},
		"provider":  map[string]any{"dbaas": map[string]any{"config_path": kubeconfig}},
		"resource":  map[string]any{typeName: map[string]any{"it": config}},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(t.dir, "main.tf.json"), module, 0o600)
}

// run returns the exit code, and all that was printed.
func (t *terraform) run(ctx context.Context, arguments ...string) (int, string, error) {
	command := exec.CommandContext(ctx, program(), arguments...)
	command.Dir, command.Env = t.dir, t.environment
	out, err := command.CombinedOutput()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		return exit.ExitCode(), string(out), nil
	}
	return 0, string(out), err
}

// settled runs what has to succeed.
func (t *terraform) settled(ctx context.Context, arguments ...string) error {
	code, out, err := t.run(ctx, arguments...)
	if err == nil && code != 0 {
		err = fmt.Errorf("terraform %s: exit code %d\n%s", strings.Join(arguments, " "), code, out)
	}
	return err
}

func applying() []string { return []string{"apply", "-auto-approve", "-input=false", "-no-color"} }

func destroying() []string { return []string{"destroy", "-auto-approve", "-input=false", "-no-color"} }

// interrupted runs Terraform, and interrupts it once or twice when held says
// that a request is held back. Terraform alone hears it, and ends while the
// request is still held: whatever waits for an answer has to give up.
func (t *terraform) interrupted(ctx context.Context, arguments []string, times int, held func() (bool, error)) (int, string, error) {
	command := exec.CommandContext(ctx, program(), arguments...)
	command.Dir, command.Env = t.dir, t.environment
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	command.WaitDelay = 5 * time.Second // a provider that outlives Terraform holds the pipes
	if err := command.Start(); err != nil {
		return 0, "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	var sent int
	limit := time.NewTimer(2 * time.Minute)
	defer limit.Stop()
	for {
		select {
		case err := <-ended:
			exit, failed := errors.AsType[*exec.ExitError](err)
			if failed {
				return exit.ExitCode(), out.String(), nil
			}
			return 0, out.String(), err
		case <-limit.C:
			return 0, out.String(), errors.Join(wrongf("it does not cease after %d interrupts", sent), command.Process.Kill())
		case <-time.After(100 * time.Millisecond):
		}
		if sent == times {
			continue
		}
		if sent == 0 {
			if now, err := held(); err != nil {
				return 0, out.String(), err
			} else if !now {
				continue
			}
		}
		sent++
		if err := command.Process.Signal(syscall.SIGINT); err != nil {
			return 0, out.String(), err
		}
	}
}
