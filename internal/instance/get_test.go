package instance

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// inRounds answers requests only when all of a round have arrived: whoever
// sends one of them only after the answer to another waits for ever.
func inRounds(sizes ...int) func(*http.Request) {
	rounds := make([]chan struct{}, len(sizes))
	for i := range rounds {
		rounds[i] = make(chan struct{})
	}
	arrivals := make(chan int)
	go func() {
		for round, size := range sizes {
			for range size {
				arrivals <- round
			}
			close(rounds[round])
		}
		close(arrivals)
	}()
	return func(r *http.Request) {
		round, expected := <-arrivals
		if !expected {
			return
		}
		select {
		case <-rounds[round]:
		case <-r.Context().Done():
		}
	}
}

func TestReadOfWhatIsNotAvailable(t *testing.T) {
	spec := wantedSpec()
	secret, held := settled(t, spec)
	running := &kubevirtv1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "pg-orders"}}
	running.Status.Phase = kubevirtv1.Running
	launcher := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "virt-launcher-pg-orders-abcde"}}
	launcher.Status.Phase = corev1.PodRunning
	foreignDisks := machineOf(t, spec, held)
	for i := range foreignDisks.Spec.Template.Spec.Volumes {
		if claim := foreignDisks.Spec.Template.Spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			claim.ClaimName += "-1f3a"
		}
	}
	for story, test := range map[string]struct {
		machine *kubevirtv1.VirtualMachine
		rounds  []int
	}{
		// The claims and the pods; then the events of VM, claims and pod, and the console.
		"not available":      {machineOf(t, spec, held), []int{5, 3, 5}},
		"disks named anyhow": {foreignDisks, []int{5, 4, 5}},
	} {
		t.Run(story, func(t *testing.T) {
			api, store := newAPIServer(t)
			api.add(t, "/api/v1/namespaces/tenant/secrets", secret)
			api.add(t, "/apis/kubevirt.io/v1/namespaces/tenant/virtualmachines", test.machine)
			api.add(t, "/apis/kubevirt.io/v1/namespaces/tenant/virtualmachineinstances", running)
			api.add(t, "/api/v1/namespaces/tenant/pods", launcher)
			api.arrive = inRounds(test.rounds...)
			got, err := store.Get(deadline(t, 20*time.Second), spec.Key())
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != string(vm.StatusCreating) {
				t.Errorf("status %s (%s)", got.Status, got.Reason)
			}
			want := 0
			for _, size := range test.rounds {
				want += size
			}
			if sent := len(api.served); sent != want {
				t.Errorf("%d requests, want %d: %v", sent, want, api.served)
			}
		})
	}
}

// What is where it is meant to be costs five requests, all at once.
func TestReadOfAnUnchangedInstanceIsOneRound(t *testing.T) {
	api, store, made := served(t)
	for _, status := range []vm.Status{vm.StatusAvailable, vm.StatusStopped} {
		t.Run(string(status), func(t *testing.T) {
			if status == vm.StatusStopped {
				stopped := made.Spec
				stopped.Running = false
				if _, err := store.Update(deadline(t, time.Minute), made.Key(), stopped); err != nil {
					t.Fatal(err)
				}
			}
			api.Lock()
			api.served, api.arrive = nil, inRounds(5)
			api.Unlock()
			defer func() { api.arrive = nil }()
			got, err := store.Get(deadline(t, 20*time.Second), made.Key())
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != string(status) || got.Reason != "" {
				t.Errorf("status %s (%s)", got.Status, got.Reason)
			}
			if len(api.served) != 5 {
				t.Errorf("requests: %v", api.served)
			}
		})
	}
}

func TestWhatTheGuestSaidIsReadWithTheRest(t *testing.T) {
	spec := wantedSpec()
	secret, held := settled(t, spec)
	api, store := newAPIServer(t)
	running := &kubevirtv1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "pg-orders"}}
	running.Status.Phase = kubevirtv1.Running
	launcher := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "virt-launcher-pg-orders-abcde"}}
	launcher.Status.Phase = corev1.PodRunning
	api.add(t, "/api/v1/namespaces/tenant/secrets", secret)
	api.add(t, "/apis/kubevirt.io/v1/namespaces/tenant/virtualmachines", machineOf(t, spec, held))
	api.add(t, "/apis/kubevirt.io/v1/namespaces/tenant/virtualmachineinstances", running)
	api.add(t, "/api/v1/namespaces/tenant/pods", launcher)
	api.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/namespaces/tenant/pods/virt-launcher-pg-orders-abcde/log" {
			return false
		}
		_, _ = w.Write([]byte("dbaas: step=install state=failed reason=\"no such version\"\n")) // the client reads it
		return true
	}
	got, err := store.Get(context.Background(), spec.Key())
	if err != nil {
		t.Fatal(err)
	}
	if got.Reason != string(vm.ReasonGuestFailed) {
		t.Errorf("reason %s: %s", got.Reason, got.Detail)
	}
}

func TestLostMachineTakesThePasswordModeWithIt(t *testing.T) {
	api, store := newAPIServer(t)
	key := standingInstance(t, api)
	api.Lock()
	delete(api.objects, vmPath)
	api.Unlock()
	got, err := store.Get(deadline(t, time.Minute), key)
	if err != nil {
		t.Fatal(err)
	}
	if got.Reason != string(vm.ReasonVMMissing) || got.MachineKnown {
		t.Errorf("reason %s, policy known: %t", got.Reason, got.MachineKnown)
	}
	// Whether it may be in Terraform's state is recorded on the machine only.
	if got.MasterPassword != "" {
		t.Error("the password is returned although nothing says that it may be")
	}
}

func TestMachineOfAStrangerIsNoInstance(t *testing.T) {
	spec := wantedSpec()
	_, held := settled(t, spec)
	stranger := machineOf(t, spec, held)
	stranger.Labels, stranger.Annotations = nil, nil
	api, store := newAPIServer(t)
	api.add(t, vmsPath, stranger)
	got, err := store.Get(deadline(t, time.Minute), spec.Key())
	if field, ok := errors.AsType[*FieldError](err); got != nil || !ok || field.Field != FieldName {
		t.Errorf("instance %v, error %v; want one about the name", got, err)
	}
	stands, err := store.stand(deadline(t, time.Minute), spec.Key())
	if err != nil {
		t.Fatal(err)
	}
	if stands.guard(spec.Key()) == nil {
		t.Error("a stranger's machine may be changed")
	}
}
