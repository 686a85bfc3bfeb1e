package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/knobs"
)

// pollAgent is how often a running guest's agent is asked.
const pollAgent = time.Second

// machines are the guests that run or ran, by the uid of their
// VirtualMachineInstance.
type machines struct {
	backend guest.Backend
	log     *slog.Logger
	leases  *leases
	// vmis and pods wake the controllers that a machine's news concerns.
	vmis, pods chan event.GenericEvent

	mu   sync.Mutex
	seed map[types.UID]*guest.Seed
	all  map[types.UID]*machine
}

func newMachines(o Options) *machines {
	return &machines{
		backend: o.Backend, log: o.Log, leases: newLeases(o.Lab.Network),
		vmis: make(chan event.GenericEvent, 256), pods: make(chan event.GenericEvent, 256),
		seed: map[types.UID]*guest.Seed{}, all: map[types.UID]*machine{},
	}
}

func (ms *machines) get(uid types.UID) *machine {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return ms.all[uid]
}

// named finds the running machine of a VirtualMachine.
func (ms *machines) named(key types.NamespacedName) *machine {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for _, m := range ms.all {
		if m.spec.Namespace == key.Namespace && m.spec.Name == key.Name && m.exit() == nil {
			return m
		}
	}
	return nil
}

// forget drops a machine whose VirtualMachineInstance is gone, and its seed.
func (ms *machines) forget(key types.NamespacedName, keep types.UID) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for uid, m := range ms.all {
		if m.spec.Namespace == key.Namespace && m.spec.Name == key.Name && uid != keep && m.exit() != nil {
			delete(ms.all, uid)
			delete(ms.seed, uid)
		}
	}
}

// keepSeed remembers the cloud-init data of a launcher that starts, once.
func (ms *machines) keepSeed(uid types.UID, s *guest.Seed) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if _, ok := ms.seed[uid]; !ok {
		ms.seed[uid] = s
	}
}

func (ms *machines) seedOf(uid types.UID) (*guest.Seed, bool) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	s, ok := ms.seed[uid]
	return s, ok
}

// boot starts the guest and watches it until it ends.
func (ms *machines) boot(ctx context.Context, s guest.Spec, pod types.NamespacedName, knobsNow func() knobs.Values) (*machine, error) {
	booted, err := ms.backend.Boot(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("boot %s/%s: %w", s.Namespace, s.Name, err)
	}
	m := &machine{Machine: booted, spec: s, pod: pod, booted: time.Now()}
	ms.mu.Lock()
	ms.all[types.UID(s.UID)] = m
	ms.mu.Unlock()
	go ms.watch(m, knobsNow)
	return m, nil
}

// watch asks the guest's agent again and again and sees the end.
func (ms *machines) watch(m *machine, knobsNow func() knobs.Values) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tick := time.NewTicker(pollAgent)
	defer tick.Stop()
	for {
		v := knobsNow()
		if d := v.Duration(knobs.CrashAfter); v.On(knobs.CrashAfter) && time.Since(m.booted) >= d {
			m.pullPlug(ms.log)
		}
		now := m.ask(ctx, v)
		m.mu.Lock()
		changed := !reflect.DeepEqual(now, m.report)
		m.report = now
		m.mu.Unlock()
		if changed {
			ms.wake(m)
		}
		select {
		case exit := <-m.Done():
			m.mu.Lock()
			m.ended, m.end, m.report = &exit, time.Now(), report{}
			m.mu.Unlock()
			ms.log.Info("guest ended", "namespace", m.spec.Namespace, "name", m.spec.Name, "failed", exit.Failed, "reason", exit.Reason)
			ms.wake(m)
			return
		case <-tick.C:
		}
	}
}

func (ms *machines) wake(m *machine) {
	ms.vmis <- event.GenericEvent{Object: &kubevirtv1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: m.spec.Namespace, Name: m.spec.Name}}}
	ms.wakePod(m.launcher())
}

func (ms *machines) wakePod(pod types.NamespacedName) {
	ms.pods <- event.GenericEvent{Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}}
}

// errNoMachine is returned for a command to a machine that does not run.
var errNoMachine = errors.New("no such machine is running")
