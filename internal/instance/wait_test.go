package instance

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

func machineNamed(version string) *kubevirtv1.VirtualMachine {
	return &kubevirtv1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "pg-orders", ResourceVersion: version}}
}

func TestFollowWatchesAndFallsBackToReading(t *testing.T) {
	resource := schema.GroupResource{Group: "kubevirt.io", Resource: "virtualmachines"}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		store := New(nil, Options{})
		events := watch.NewFake()
		var reads, watches atomic.Int32
		var stands atomic.Pointer[kubevirtv1.VirtualMachine]
		stands.Store(machineNamed("1"))
		out := make(chan *kubevirtv1.VirtualMachine)
		go follow(ctx, store, follower[kubevirtv1.VirtualMachine]{
			name: "pg-orders",
			get: func(context.Context, string, metav1.GetOptions) (*kubevirtv1.VirtualMachine, error) {
				reads.Add(1)
				if found := stands.Load(); found != nil {
					return found, nil
				}
				return nil, apierrors.NewNotFound(resource, "pg-orders")
			},
			watch: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
				asked := watches.Add(1)
				if o.FieldSelector != "metadata.name=pg-orders" || o.ResourceVersion != "" {
					t.Errorf("watch with %+v", o)
				}
				if asked > 1 {
					return nil, apierrors.NewForbidden(resource, "", errors.New("no"))
				}
				return events, nil
			},
		}, out)
		expect := func(version string) {
			t.Helper()
			got := <-out
			if (got == nil) != (version == "") || got != nil && got.ResourceVersion != version {
				t.Fatalf("seen %v, want version %q", got, version)
			}
		}
		expect("1")
		events.Modify(machineNamed("2"))
		expect("2")
		events.Delete(machineNamed("2"))
		expect("")
		if got := reads.Load(); got != 1 {
			t.Errorf("%d reads while watching, want one", got)
		}
		// The watch is dropped, and from now on refused: it reads instead, and
		// asks for no watch again.
		stands.Store(machineNamed("3"))
		events.Stop()
		expect("3")
		stands.Store(nil)
		expect("")
		expect("")
		if got := watches.Load(); got != 2 {
			t.Errorf("%d watches, want the one that worked and the one that was refused", got)
		}
		cancel()
		synctest.Wait()
	})
}

func TestHopelessnessHasToLast(t *testing.T) {
	w := watchfulness{grace: 10 * time.Second}
	start := time.Unix(0, 0)
	stuck := vm.State{Hopeless: true, Reason: vm.ReasonCrashLoop}
	patient := vm.State{Hopeless: true, Reason: vm.ReasonClaimPending, Grace: 30 * time.Second}
	for _, step := range []struct {
		at    time.Duration
		state vm.State
		want  bool
	}{
		{0, stuck, false},
		{9 * time.Second, stuck, false},
		{9 * time.Second, vm.State{}, false}, // it went on
		{10 * time.Second, stuck, false},
		{20 * time.Second, stuck, true},
		{20 * time.Second, patient, false}, // another reason starts anew
		{49 * time.Second, patient, false},
		{50 * time.Second, patient, true},
	} {
		if got := w.hopeless(step.state, start.Add(step.at)); got != step.want {
			t.Errorf("after %s: hopeless = %t", step.at, got)
		}
	}
}

func TestStateIsReportedOncePerChange(t *testing.T) {
	var w watchfulness
	booting := vm.State{Status: vm.StatusCreating, Reason: vm.ReasonBooting}
	if !w.news(booting) || w.news(booting) || !w.news(vm.State{Status: vm.StatusAvailable}) {
		t.Error("a state is told twice or not at all")
	}
}
