// Package labtest gives tests a running lab.
//
//	func TestMain(m *testing.M) { labtest.Main(m) }   // once in a package: ends its labs
//
//	func TestStory(t *testing.T) {
//		lab := labtest.Start(t, guest.Sim)             // shared by all tests of the binary
//		name := labtest.Name(t)                        // a name that no other test has
//		lab.Knob(t, name, "never-ready", "true")       // this machine only, until the test ends
//		vm := lab.Create(t, labtest.Machine{Name: name})
//		labtest.Wait(t, lab, vm.VMI(), "an address", func(vmi *kubevirt.VirtualMachineInstance) bool { … })
//		lab.Run(t, "reboot", vm.Namespace+"/"+vm.Name) // any command of the lab's binary
//	}
//
// With LAB_TEST_DIR set, labs live in the folder LAB_TEST_DIR/KIND, are taken
// over if they run and are left running: a test then starts in a second.
package labtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	kubevirt "kubevirt.io/api/core/v1"
	cdi "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/gobuild"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/state"
)

// Tenant is the namespace in which the tenant user may work.
const Tenant = "tenant-acme"

// A Lab is a running lab.
type Lab struct {
	Dir   state.Dir
	Guest guest.Kind
	// Record is lab.json.
	Record *state.Lab
	// Admin may do everything, User what examples/rbac allows. User goes
	// straight to the API server, not through the fault proxy.
	Admin, User Access

	binary string
}

// Access is one user's way to the API server.
type Access struct {
	Config *rest.Config
	Kube   kubernetes.Interface
	// Client knows Kubernetes', KubeVirt's and CDI's types; everything else
	// goes through unstructured objects.
	Client client.WithWatch
}

// labs are the running labs of this test binary, by kind of guest.
type labs struct {
	sync.Mutex
	byKind map[guest.Kind]*Lab
	failed map[guest.Kind]error
}

// started is the one thing that tests of a package share: starting a lab for
// each of them would take minutes.
var started = &labs{byKind: map[guest.Kind]*Lab{}, failed: map[guest.Kind]error{}} //nolint:gochecknoglobals // see above

// Main runs a package's tests and ends the labs that they started.
func Main(m *testing.M) {
	code := m.Run()
	for kind, lab := range started.byKind {
		if os.Getenv("LAB_TEST_DIR") != "" {
			continue
		}
		if err := lab.down(); err != nil {
			fmt.Fprintf(os.Stderr, "labtest: end the %s lab: %v\n", kind, err)
			code = 1
		}
	}
	os.Exit(code)
}

// Start returns the lab of this kind, which it starts for the first test that asks.
func Start(t testing.TB, kind guest.Kind) *Lab {
	t.Helper()
	if kind != guest.Sim && os.Geteuid() != 0 {
		t.Skipf("a lab with guests of the kind %s needs root: make test-lab as root", kind)
	}
	started.Lock()
	defer started.Unlock()
	if err := started.failed[kind]; err != nil {
		t.Fatalf("the lab did not start for an earlier test: %v", err)
	}
	if lab := started.byKind[kind]; lab != nil {
		return lab
	}
	lab, err := start(kind)
	if err != nil {
		started.failed[kind] = err
		t.Fatal(err)
	}
	started.byKind[kind] = lab
	return lab
}

// start builds the lab's command, starts a lab and connects to it.
func start(kind guest.Kind) (*Lab, error) {
	folder, err := folderFor(kind)
	if err != nil {
		return nil, err
	}
	lab := &Lab{Dir: state.Dir(folder), Guest: kind, binary: filepath.Join(folder, "lab-under-test")}
	_, file, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(file), "..", "..", "..")
	if out, err := gobuild.Command(context.Background(), root, "-o", lab.binary, "./cmd/lab").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the lab's command: %w\n%s", err, out)
	}
	if out, err := lab.command("up", "-guest", string(kind), "-root", root).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("start a %s lab in %s: %w\n%s", kind, folder, err, out)
	}
	if lab.Record, err = lab.Dir.Load(); err != nil {
		return nil, err
	}
	if lab.Admin, err = NewAccess(lab.Dir.Kubeconfig()); err != nil {
		return nil, err
	}
	lab.User, err = NewAccess(lab.Dir.TenantKubeconfig())
	return lab, err
}

// folderFor names the lab's folder after this process, and first ends the labs
// of test binaries that were killed and could not do it themselves.
func folderFor(kind guest.Kind) (string, error) {
	if fixed := os.Getenv("LAB_TEST_DIR"); fixed != "" {
		return filepath.Join(fixed, string(kind)), os.MkdirAll(filepath.Join(fixed, string(kind)), 0o755)
	}
	const prefix = "dbaas-labtest-"
	old, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	if err != nil {
		return "", err
	}
	for _, folder := range old {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(folder), prefix), "-")
		pid, err := strconv.Atoi(number)
		if err != nil || syscall.Kill(pid, 0) == nil {
			continue
		}
		lab := &Lab{Dir: state.Dir(folder), binary: filepath.Join(folder, "lab-under-test")}
		if err := lab.down(); err != nil {
			return "", fmt.Errorf("end the lab that a killed test left in %s: %w", folder, err)
		}
	}
	return os.MkdirTemp("", fmt.Sprintf("%s%d-%s-", prefix, os.Getpid(), kind))
}

func (l *Lab) down() error {
	if _, err := os.Stat(l.binary); err == nil {
		if out, err := l.command("down").CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
	}
	return os.RemoveAll(string(l.Dir))
}

func (l *Lab) command(name string, args ...string) *exec.Cmd {
	return exec.CommandContext(context.Background(), l.binary, append([]string{name, "-dir", string(l.Dir)}, args...)...)
}

// Run runs a command of the lab's binary on this lab and returns what it prints.
func (l *Lab) Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := l.command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("lab %s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Binary is the lab's command, for tests that run it in their own way.
func (l *Lab) Binary() string { return l.binary }

// NewAccess connects with a kubeconfig, without a throttle of its own.
func NewAccess(kubeconfig string) (Access, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return Access{}, fmt.Errorf("read %s: %w", kubeconfig, err)
	}
	config.QPS = -1
	types := apiruntime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{scheme.AddToScheme, corev1.AddToScheme, storagev1.AddToScheme, kubevirt.AddToScheme, cdi.AddToScheme} {
		if err := add(types); err != nil {
			return Access{}, err
		}
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return Access{}, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: types})
	return Access{Config: config, Kube: kube, Client: c}, err
}
