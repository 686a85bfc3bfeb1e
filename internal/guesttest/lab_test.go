// Package guesttest tells what happens inside the machine: Terraform makes an
// instance on a lab whose guests really boot, and clients log in to it.
package guesttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// namespace is where the lab's tenant may have instances.
	namespace = "tenant-acme"

	// patience bounds each wait, for the slowest machine that runs these tests.
	patience = 10 * time.Minute
	// look is how often something is looked at that cannot be watched.
	look = 300 * time.Millisecond
)

// lab is a running lab, seen by its administrator.
type lab struct {
	dir     string
	program string // bin/lab
	guest   string // container or vm
	network int    // 198.18.network.0/24
	// packages is the port of the package proxy, at the network's first address.
	packages int
	dynamic  dynamic.Interface
}

// useLab finds the lab that the environment names, whose guests are of the kind
// that the variable stands for.
func useLab(t *testing.T, variable, kind string) *lab {
	t.Helper()
	dir := os.Getenv(variable)
	if dir == "" {
		t.Skipf("needs a lab with guests of the kind %s, whose folder %s names: make %s", kind, variable, map[string]string{"container": "test-guest", "vm": "test-vm"}[kind])
	}
	record, err := os.ReadFile(filepath.Join(dir, "lab.json"))
	must(t, err)
	var parts struct {
		Guest   string
		Network int
		Ports   map[string]int
	}
	must(t, json.Unmarshal(record, &parts))
	program, err := filepath.Abs("../../bin/lab")
	must(t, err)
	l := &lab{dir: dir, program: program, guest: parts.Guest, network: parts.Network, packages: parts.Ports["packages"]}
	if l.guest != kind {
		t.Fatalf("%s names a lab whose guests are of the kind %s, not %s", variable, l.guest, kind)
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	must(t, err)
	config.QPS = -1
	l.dynamic, err = dynamic.NewForConfig(config)
	must(t, err)
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until looks again and again until the check has nothing to say.
func until(t *testing.T, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), look, patience, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%v: %v", err, last)
	}
}

// tool runs a command of the lab.
func (l *lab) tool(t *testing.T, arguments ...string) {
	t.Helper()
	all := append([]string{arguments[0], "-dir", l.dir}, arguments[1:]...)
	out, err := exec.CommandContext(t.Context(), l.program, all...).CombinedOutput()
	if err != nil {
		t.Fatalf("lab %s: %v: %s", strings.Join(all, " "), err, out)
	}
}

// restore takes a knob back when the test's own context is over.
func (l *lab) restore(t *testing.T, knob string) {
	t.Helper()
	out, err := exec.CommandContext(context.Background(), l.program, "knob", "-dir", l.dir, knob+"-").CombinedOutput()
	if err != nil {
		t.Errorf("lab knob %s-: %v: %s", knob, err, out)
	}
}

// The kinds of objects that the stories look at and change.
func machines() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
}

func running() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"}
}

func claims() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
}

func secrets() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
}

// get returns an object, nil if there is none.
func (l *lab) get(ctx context.Context, kind schema.GroupVersionResource, name string) (*unstructured.Unstructured, error) {
	object, err := l.dynamic.Resource(kind).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}

// patch merges fields into an object, as somebody else than the provider.
func (l *lab) patch(t *testing.T, kind schema.GroupVersionResource, name string, fields map[string]any) {
	t.Helper()
	body, err := json.Marshal(fields)
	must(t, err)
	_, err = l.dynamic.Resource(kind).Namespace(namespace).Patch(t.Context(), name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "somebody"})
	must(t, err)
}

// secret returns a value of a Secret.
func (l *lab) secret(t *testing.T, name, key string) []byte {
	t.Helper()
	object, err := l.get(t.Context(), secrets(), name)
	must(t, err)
	if object == nil {
		t.Fatalf("there is no Secret %s", name)
	}
	var typed struct{ Data map[string][]byte }
	text, err := object.MarshalJSON()
	must(t, err)
	must(t, json.Unmarshal(text, &typed))
	return typed.Data[key]
}

// vmi is the machine that runs, nil if none does.
func (l *lab) vmi(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	return l.get(ctx, running(), "pg-"+name)
}

// off waits until no machine runs.
func (l *lab) off(t *testing.T, name string) {
	t.Helper()
	until(t, func(ctx context.Context) error {
		vmi, err := l.vmi(ctx, name)
		if err == nil && vmi != nil {
			err = errors.New("the machine still runs")
		}
		return err
	})
}

// switchTo changes the machine's power.
func (l *lab) switchTo(t *testing.T, name, strategy string) {
	t.Helper()
	l.patch(t, machines(), "pg-"+name, map[string]any{"spec": map[string]any{"runStrategy": strategy}})
}

// restart stops the machine, and starts it with what the Secrets say by now.
func (l *lab) restart(t *testing.T, name string, between ...func()) {
	t.Helper()
	l.switchTo(t, name, "Halted")
	l.off(t, name)
	for _, change := range between {
		change()
	}
	l.switchTo(t, name, "Always")
}

// ready waits until the machine that runs says that it is.
func (l *lab) ready(t *testing.T, name string) {
	t.Helper()
	until(t, func(ctx context.Context) error {
		vmi, err := l.vmi(ctx, name)
		if err != nil || vmi == nil {
			return errors.Join(err, errors.New("no machine runs"))
		}
		conditions, _, err := unstructured.NestedSlice(vmi.Object, "status", "conditions")
		if err != nil {
			return err
		}
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] == "Ready" && c["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("not ready; the console's last word: %s", lastWord(l.console(vmi)))
	})
}

// says waits until the console of the machine that runs has a line.
func (l *lab) says(t *testing.T, name string, words ...string) {
	t.Helper()
	until(t, func(ctx context.Context) error {
		vmi, err := l.vmi(ctx, name)
		if err != nil || vmi == nil {
			return errors.Join(err, errors.New("no machine runs"))
		}
		console := l.console(vmi)
		for _, text := range words {
			if !strings.Contains(console, text) {
				return fmt.Errorf("the console does not say %q; its last word: %s", text, lastWord(console))
			}
		}
		return nil
	})
}

// console is what the machine's serial console has printed since it started.
func (l *lab) console(vmi *unstructured.Unstructured) string {
	text, err := os.ReadFile(filepath.Join(l.dir, "guests", string(vmi.GetUID()), "console.log"))
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(string(text), "\r", "")
}

func lastWord(console string) string {
	last := "none"
	for line := range strings.Lines(console) {
		if _, word, found := strings.Cut(line, "dbaas: "); found {
			last = strings.TrimSpace(word)
		}
	}
	return last
}
