package instance

import (
	"context"
	"fmt"
	"time"

	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// awaitAvailable watches the VM and its VMI until the instance is available.
// The state is the last one that was seen, also with an error.
func (s *Store) awaitAvailable(ctx context.Context, st *standing) (vm.State, error) {
	return s.await(ctx, st, func(_ vm.Observed, state vm.State) bool { return state.Available })
}

// await watches the VM and its VMI until what is seen satisfies.
func (s *Store) await(ctx context.Context, st *standing, satisfies func(vm.Observed, vm.State) bool) (vm.State, error) {
	inner, stop := context.WithCancel(ctx)
	defer stop()
	machines, instances := s.followMachine(inner, st)
	looks := time.NewTicker(s.pace.look)
	defer looks.Stop()

	seen := st.observed()
	// The claims may not have been made when this was read, and what the
	// Secrets hold matters only afterwards.
	seen.DataClaimMissing, seen.BootstrapMaterial, seen.CredentialsMissing = false, false, false
	progress := watchfulness{grace: s.pace.grace}
	for {
		state := vm.Assess(seen)
		if satisfies(seen, state) {
			st.vm, st.vmi = seen.VM, seen.VMI
			return state, nil
		}
		if progress.news(state) {
			s.report(ctx, "waiting for instance "+st.key.String()+": "+state.Detail)
		}
		if progress.hopeless(state, time.Now()) {
			return state, &UnavailableError{Reason: string(state.Reason), Detail: state.Detail, Hopeless: true}
		}
		select {
		case <-ctx.Done():
			return state, &UnavailableError{Reason: string(state.Reason), Detail: state.Detail, Err: ctx.Err()}
		case machine := <-machines:
			if !outdated(seen.VM, machine) {
				seen.VM = machine
			}
		case machine := <-instances:
			seen.See(machine)
		case <-looks.C:
			s.lookCloser(ctx, st, &seen)
		}
	}
}

func (s *Store) followMachine(ctx context.Context, st *standing) (<-chan *kubevirtv1.VirtualMachine, <-chan *kubevirtv1.VirtualMachineInstance) {
	machines := make(chan *kubevirtv1.VirtualMachine)
	instances := make(chan *kubevirtv1.VirtualMachineInstance)
	vms := s.client.VirtualMachines.VirtualMachines(st.key.Namespace)
	vmis := s.client.VirtualMachines.VirtualMachineInstances(st.key.Namespace)
	go follow(ctx, s, follower[kubevirtv1.VirtualMachine]{kind: "virtual machine", name: st.names.VM, get: vms.Get, watch: vms.Watch}, machines)
	go follow(ctx, s, follower[kubevirtv1.VirtualMachineInstance]{kind: "running instance", name: st.names.VM, get: vmis.Get, watch: vmis.Watch}, instances)
	return machines, instances
}

// watchfulness remembers what a wait has seen: what was already told, and
// since when there has been no hope. A hopeless look may be a passing one, so
// it has to last.
type watchfulness struct {
	grace  time.Duration
	told   string
	reason vm.Reason
	since  time.Time
}

// news says whether the state was not told yet.
func (w *watchfulness) news(s vm.State) bool {
	text := fmt.Sprintf("%s/%s", s.Status, s.Reason)
	changed := text != w.told
	w.told = text
	return changed
}

// hopeless says whether the state has been without hope for long enough.
func (w *watchfulness) hopeless(s vm.State, now time.Time) bool {
	if !s.Hopeless {
		w.since = time.Time{}
		return false
	}
	if w.since.IsZero() || w.reason != s.Reason {
		w.since, w.reason = now, s.Reason
	}
	return now.Sub(w.since) >= max(w.grace, s.Grace)
}
