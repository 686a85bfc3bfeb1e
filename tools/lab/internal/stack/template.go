package stack

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/fixtures"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/pki"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/state"
)

// A template is an etcd folder that holds all definitions and the base
// fixtures, which saves each start the seconds that creating them takes, and
// the file hooks.json with KubeVirt's webhooks, for which the heavy binary need
// not be started again. It is kept in the cache under a key of all that went in.

// template is the folder of the template for the current binaries. Its key is
// made of the versions of the modules and of the sources that decide what is in
// it, not of the binary: that changes with every module that anything requires.
func (s *Stack) template() (string, error) {
	key := sha256.New()
	key.Write(fixtures.BaseText())
	built, err := buildinfo.ReadFile(s.binary("controlplane"))
	if err != nil {
		return "", fmt.Errorf("read versions: %w", err)
	}
	decisive := append(definitionModules(), "k8s.io/kubernetes", "kubevirt.io/kubevirt", "kubevirt.io/containerized-data-importer")
	for _, m := range built.Deps {
		if slices.Contains(decisive, m.Path) {
			if m.Replace != nil {
				m = m.Replace
			}
			fmt.Fprintln(key, m.Path, m.Version)
		}
	}
	for _, pattern := range []string{"crd/*", "kubevirt/*"} {
		files, err := filepath.Glob(filepath.Join(s.root, "tools", "lab", "internal", pattern))
		if err != nil {
			return "", err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(key, "%s %d\n%s", filepath.Base(file), len(text), text)
		}
	}
	return filepath.Join(s.cache, "template-"+hex.EncodeToString(key.Sum(nil))[:16]), nil
}

// ensureTemplate makes the template unless there is one.
func (s *Stack) ensureTemplate(ctx context.Context) (err error) {
	folder, err := s.template()
	if err != nil {
		return err
	}
	// Labs that start together make it once.
	unlock, err := lock(filepath.Join(s.cache, ".template.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	// Its time says when it was last used: see forgetTemplates.
	if err := os.Chtimes(folder, time.Time{}, time.Now()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	s.say("installing the definitions of Harvester, KubeVirt, CDI and Longhorn into a new etcd folder, once")
	work, err := os.MkdirTemp(s.cache, ".template-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	t := &Stack{dir: state.Dir(work), root: s.root, cache: s.cache, out: s.out, begin: s.begin}
	if err := t.makeTemplate(ctx, s.dir.Path("bin")); err != nil {
		return fmt.Errorf("make etcd template: %w", err)
	}
	if err := os.Rename(t.dir.Path("template"), folder); err != nil {
		return err
	}
	return s.forgetTemplates()
}

// forgetTemplates removes the templates that no lab used for a week. A younger
// one may be in use this moment, by a lab of another version.
func (s *Stack) forgetTemplates() error {
	all, err := filepath.Glob(filepath.Join(s.cache, "template-*"))
	if err != nil {
		return err
	}
	for _, folder := range all {
		info, err := os.Stat(folder)
		if err != nil || time.Since(info.ModTime()) < 7*24*time.Hour {
			continue
		}
		if err := os.RemoveAll(folder); err != nil {
			return fmt.Errorf("forget old template: %w", err)
		}
	}
	return nil
}

// makeTemplate starts etcd and an API server in a folder of their own, fills
// them, and keeps what etcd wrote.
func (s *Stack) makeTemplate(ctx context.Context, binaries string) (err error) {
	if err := os.Symlink(binaries, s.dir.Path("bin")); err != nil {
		return err
	}
	ports, err := state.NewPorts(ctx)
	if err != nil {
		return err
	}
	s.lab = &state.Lab{Ports: ports}
	if err := pki.Create(s.dir.PKI("")); err != nil {
		return err
	}
	if err := pki.CreateUsers(s.dir.PKI(""), s.lab.URL("apiserver")); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir.Path("template"), 0o755); err != nil {
		return err
	}
	running, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	err = runSteps(running, []step{
		{name: "etcd", run: s.startEtcd},
		{name: "kube-apiserver", after: []string{"etcd"}, run: s.startAPIServer},
		{name: "definitions", after: []string{"kube-apiserver"}, run: s.installDefinitions},
		{name: "base fixtures", after: []string{"definitions"}, run: s.createBase},
		{name: "hooks", run: s.writeHooks},
	})
	if err := errors.Join(err, s.stopAll()); err != nil {
		return err
	}
	return os.Rename(s.dir.Path("etcd"), s.dir.Path("template", "etcd"))
}

func (s *Stack) installDefinitions(ctx context.Context) error {
	files, err := s.definitionFiles(ctx)
	if err != nil {
		return err
	}
	return s.command(ctx, nil, append([]string{"crds", "-kubeconfig", s.dir.PKI("admin.kubeconfig")}, files...)...)
}

// definitionModules lists the modules that carry definitions as files.
func definitionModules() []string {
	return slices.Sorted(maps.Keys(definitionPaths()))
}

// definitionPaths says where in those modules the files are.
func definitionPaths() map[string]string {
	return map[string]string{
		"github.com/harvester/harvester":                                       "deploy/charts/harvester-crd/templates",
		"github.com/harvester/harvester-network-controller":                    "manifests/crds",
		"github.com/k8snetworkplumbingwg/network-attachment-definition-client": "artifacts/networks-crd.yaml",
		"github.com/longhorn/longhorn-manager":                                 "k8s/crds.yaml",
	}
}

// definitionFiles finds the files in the module cache.
func (s *Stack) definitionFiles(ctx context.Context) ([]string, error) {
	inside := definitionPaths()
	args := append([]string{"list", "-m", "-f", "{{.Path}} {{.Dir}}"}, definitionModules()...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(s.root, "tools", "lab")
	cmd.Stderr = s.out
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("find modules: %w", err)
	}
	var files []string
	for line := range strings.Lines(string(out)) {
		module, folder, _ := strings.Cut(strings.TrimSpace(line), " ")
		if folder == "" {
			return nil, fmt.Errorf("find module %s: it is not in the module cache", module)
		}
		files = append(files, filepath.Join(folder, inside[module]))
	}
	return files, nil
}

func (s *Stack) createBase(ctx context.Context) error {
	c, err := s.client()
	if err != nil {
		return err
	}
	return fixtures.Base(ctx, c)
}

func (s *Stack) writeHooks(ctx context.Context) (err error) {
	f, err := os.Create(s.dir.Path("template", "hooks.json"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return s.command(ctx, f, "kubevirt-hooks")
}

// command runs the control plane's binary to its end.
func (s *Stack) command(ctx context.Context, stdout io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, s.binary("controlplane"), args...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = stdout, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, said.String())
	}
	return nil
}

// client is the admin's, for objects of any type.
func (s *Stack) client() (client.WithWatch, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.dir.PKI("admin.kubeconfig"))
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return client.NewWithWatch(config, client.Options{})
}

// hooks reads the template's hooks.json.
func (s *Stack) hooks(folder string) ([]map[string]any, error) {
	f, err := os.Open(filepath.Join(folder, "hooks.json"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []map[string]any
	for in := json.NewDecoder(f); ; {
		var o map[string]any
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("parse %s: %w", f.Name(), err)
		}
		all = append(all, o)
	}
}
