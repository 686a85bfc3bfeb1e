package vm_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	kubevirtv1 "kubevirt.io/api/core/v1"
	kubevirtclient "kubevirt.io/client-go/kubevirt/typed/core/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// A lab is a running lab, seen as the tenant.
type lab struct {
	kube     kubernetes.Interface
	kubevirt kubevirtclient.KubevirtV1Interface
	dynamic  dynamic.Interface

	mu       sync.Mutex
	warnings []string
}

// HandleWarningHeader keeps what the API warns of.
func (l *lab) HandleWarningHeader(_ int, _ string, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.warnings = append(l.warnings, text)
}

func openLab(t *testing.T) *lab {
	t.Helper()
	dir := os.Getenv("DBAAS_LAB_DIR")
	if dir == "" {
		t.Skip("needs a lab: run `make test-acceptance`, or `make lab-up` and then DBAAS_LAB_DIR=$PWD/.lab go test ./internal/vm")
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "tenant.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{}
	config.QPS = -1
	config.WarningHandler = l
	l.kube = must(kubernetes.NewForConfig(config))(t)
	l.kubevirt = must(kubevirtclient.NewForConfig(rest.CopyConfig(config)))(t)
	l.dynamic = must(dynamic.NewForConfig(config))(t)
	return l
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// observe reads what Assess judges.
func (l *lab) observe(ctx context.Context, d vm.Desired) (vm.Observed, error) {
	names := vm.NamesOf(d.Name)
	o := vm.Observed{SecretHash: d.ConfigHash}
	var errs [5]error
	claims := l.kube.CoreV1().PersistentVolumeClaims(d.Namespace)
	o.VM, errs[0] = orNil(l.kubevirt.VirtualMachines(d.Namespace).Get(ctx, names.VM, metav1.GetOptions{}))
	o.VMI, errs[1] = orNil(l.kubevirt.VirtualMachineInstances(d.Namespace).Get(ctx, names.VM, metav1.GetOptions{}))
	o.OSClaim, errs[2] = orNil(claims.Get(ctx, names.OSVolume, metav1.GetOptions{}))
	o.DataClaim, errs[3] = orNil(claims.Get(ctx, names.DataVolume, metav1.GetOptions{}))
	var events *corev1.EventList
	events, errs[4] = l.kube.CoreV1().Events(d.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.name=" + names.DataVolume,
	})
	if events != nil {
		o.Events = events.Items
	}
	return o, errors.Join(errs[:]...)
}

func orNil[T any](v *T, err error) (*T, error) {
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return v, err
}

func (l *lab) imageClass(t *testing.T) string {
	t.Helper()
	image, err := l.dynamic.Resource(schema.GroupVersionResource{Group: "harvesterhci.io", Version: "v1beta1", Resource: "virtualmachineimages"}).
		Namespace("default").Get(t.Context(), "debian-12", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return image.Object["status"].(map[string]any)["storageClassName"].(string)
}

// create makes the VM and what it needs; the test's end removes both.
func (l *lab) create(t *testing.T, d vm.Desired, v *kubevirtv1.VirtualMachine) {
	t.Helper()
	l.remove(t, d)
	t.Cleanup(func() { l.remove(t, d) })
	if _, err := l.kube.CoreV1().Secrets(d.Namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: vm.NamesOf(d.Name).CloudInit, Labels: vm.Labels(d.Name)},
		StringData: map[string]string{"userdata": "#cloud-config\n{}\n", "networkdata": "version: 2\n"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	manifest := must(vm.Manifest(v))(t)
	if _, err := l.dynamic.Resource(schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}).
		Namespace(d.Namespace).Create(t.Context(), manifest, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
		t.Fatal(err)
	}
}

// until observes until the state is as wanted, and returns the states on the way.
func (l *lab) until(t *testing.T, d vm.Desired, what string, done func(vm.State) bool) (vm.Observed, []vm.State) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var states []vm.State
	var seen vm.Observed
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for {
		o, err := l.observe(ctx, d)
		if err != nil {
			t.Fatalf("wait until %s: %v, last states: %+v", what, err, states)
		}
		seen.See(o.VMI)
		o.Failed = seen.Failed
		state := vm.Assess(o)
		if len(states) == 0 || states[len(states)-1].Reason != state.Reason || states[len(states)-1].Status != state.Status {
			states = append(states, state)
			capture(t, o, state)
		}
		if done(state) {
			return o, states
		}
		<-ticks.C
	}
}

// A captured instance is a file of testdata/lab, made with -update.
type captured struct {
	Want struct {
		Status  vm.Status
		Reason  vm.Reason
		Address string
	}
	VM                 *kubevirtv1.VirtualMachine
	VMI                *kubevirtv1.VirtualMachineInstance
	OSClaim, DataClaim *corev1.PersistentVolumeClaim
}

func capture(t *testing.T, o vm.Observed, s vm.State) {
	t.Helper()
	if !*update || len(o.Events) > 0 && s.Reason == vm.ReasonClaimPending {
		return
	}
	c := captured{VM: o.VM, VMI: o.VMI, OSClaim: o.OSClaim, DataClaim: o.DataClaim}
	c.Want.Status, c.Want.Reason, c.Want.Address = s.Status, s.Reason, s.Address
	for _, m := range []metav1.Object{o.VM, o.VMI, o.OSClaim, o.DataClaim} {
		switch m := m.(type) {
		case *kubevirtv1.VirtualMachine:
			if m != nil {
				m.ManagedFields = nil
			}
		case *kubevirtv1.VirtualMachineInstance:
			if m != nil {
				m.ManagedFields = nil
			}
		case *corev1.PersistentVolumeClaim:
			if m != nil {
				m.ManagedFields = nil
			}
		}
	}
	b, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	name := string(s.Status)
	if s.Reason != "" {
		name += "-" + string(s.Reason)
	}
	path := filepath.Join("testdata", "lab", name+".json")
	if err := os.WriteFile(path, append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The real webhooks take the VM without a word, and what they and the
// controllers make of it still reads as it was meant.
func TestLabTakesTheVM(t *testing.T) {
	l := openLab(t)
	d := desired()
	d.Name = "vm-package"
	d.ImageStorageClass = l.imageClass(t)
	d.Tags = map[string]string{"team": "payments"}
	built := must(vm.Build(d))(t)
	l.create(t, d, built)

	o, states := l.until(t, d, "it is available", func(s vm.State) bool { return s.Available })
	for _, s := range states[:len(states)-1] {
		if s.Status != vm.StatusCreating {
			t.Errorf("on the way it was %s (%s), want only creating: %s", s.Status, s.Reason, s.Detail)
		}
	}
	l.mu.Lock()
	if len(l.warnings) > 0 {
		t.Errorf("the API warned: %v", l.warnings)
	}
	l.mu.Unlock()
	type reads struct {
		Record         vm.Record
		Disks          vm.Disks
		VCPU, Memory   int64
		Network, MAC   string
		Secret, Hash   string
		Running, Ours  bool
		DataGiB, OSGiB int64
		ClaimRecord    vm.Record
		ClaimsOurs     bool
	}
	read := func(v *kubevirtv1.VirtualMachine) reads {
		r := reads{
			Record: vm.ReadRecord(v), Disks: vm.DisksOf(v), Network: vm.NetworkRef(v), MAC: vm.MAC(v),
			Secret: vm.CloudInitSecret(v), Hash: vm.TemplateHash(v), Running: vm.WantsRunning(v), Ours: vm.Ours(v, d.Name),
		}
		r.VCPU, r.Memory = vm.Shape(v)
		return r
	}
	want, got := read(built), read(o.VM)
	want.DataGiB, want.OSGiB, want.ClaimsOurs = d.StorageGiB, d.OSDiskGiB, true
	want.ClaimRecord = want.Record
	want.ClaimRecord.PasswordMode = ""
	got.DataGiB, got.OSGiB = vm.GiB(o.DataClaim), vm.GiB(o.OSClaim)
	got.ClaimsOurs = vm.Ours(o.DataClaim, d.Name) && vm.Ours(o.OSClaim, d.Name)
	got.ClaimRecord = vm.ReadRecord(o.DataClaim)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("as read back (-built +read):\n%s", diff)
	}
	l.stopAndStart(t, d)
}

func (l *lab) stopAndStart(t *testing.T, d vm.Desired) {
	t.Helper()
	machines := l.kubevirt.VirtualMachines(d.Namespace)
	patch := func(body string) {
		t.Helper()
		if _, err := machines.Patch(t.Context(), vm.NamesOf(d.Name).VM, types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"metadata":{"annotations":{"` + vm.AnnotationAvailableSince + `":"2026-11-30T13:00:00Z"}},"spec":{"runStrategy":"Halted"}}`)
	_, states := l.until(t, d, "it is stopped", func(s vm.State) bool { return s.Status == vm.StatusStopped })
	allowed(t, "stop", states, vm.StatusAvailable, vm.StatusStopping, vm.StatusStopped)
	patch(`{"spec":{"runStrategy":"Always"}}`)
	_, states = l.until(t, d, "it is available again", func(s vm.State) bool { return s.Available })
	allowed(t, "start", states, vm.StatusStarting, vm.StatusDegraded, vm.StatusAvailable)
}

func allowed(t *testing.T, what string, states []vm.State, statuses ...vm.Status) {
	t.Helper()
	for _, s := range states {
		if !slices.Contains(statuses, s.Status) {
			t.Errorf("during the %s it was %s (%s): %s", what, s.Status, s.Reason, s.Detail)
		}
	}
}

// remove deletes what the test made and waits until it is gone.
func (l *lab) remove(t *testing.T, d vm.Desired) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
	defer cancel()
	names := vm.NamesOf(d.Name)
	foreground := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}
	claims := l.kube.CoreV1().PersistentVolumeClaims(d.Namespace)
	secrets := l.kube.CoreV1().Secrets(d.Namespace)
	for _, step := range []struct {
		erase func() error
		look  func() error
	}{
		{
			func() error { return l.kubevirt.VirtualMachines(d.Namespace).Delete(ctx, names.VM, foreground) },
			func() error {
				_, err := l.kubevirt.VirtualMachines(d.Namespace).Get(ctx, names.VM, metav1.GetOptions{})
				return err
			},
		},
		{
			func() error { return claims.Delete(ctx, names.OSVolume, metav1.DeleteOptions{}) },
			func() error { _, err := claims.Get(ctx, names.OSVolume, metav1.GetOptions{}); return err },
		},
		{
			func() error { return claims.Delete(ctx, names.DataVolume, metav1.DeleteOptions{}) },
			func() error { _, err := claims.Get(ctx, names.DataVolume, metav1.GetOptions{}); return err },
		},
		{
			func() error { return secrets.Delete(ctx, names.CloudInit, metav1.DeleteOptions{}) },
			func() error { _, err := secrets.Get(ctx, names.CloudInit, metav1.GetOptions{}); return err },
		},
	} {
		// Harvester's webhook judges by a cache: what was just made possible it
		// may refuse once more.
		for {
			erased := step.erase()
			if apierrors.IsNotFound(erased) || apierrors.IsNotFound(step.look()) {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("remove %s: %v", names.VM, errors.Join(erased, ctx.Err()))
			}
		}
	}
}
