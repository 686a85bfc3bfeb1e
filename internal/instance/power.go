package instance

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// patchMachine changes the VM that was read, whatever was written to it since.
func (s *Store) patchMachine(ctx context.Context, st *standing, c change) error {
	body, err := c.onObject(st.vm)
	if err != nil {
		return wrap(err, "patch vm %s/%s", st.key.Namespace, st.names.VM)
	}
	written, err := retry(ctx, s, func(ctx context.Context) (*kubevirtv1.VirtualMachine, error) {
		return s.client.VirtualMachines.VirtualMachines(st.key.Namespace).Patch(ctx, st.vm.Name, mergePatch, body, metav1.PatchOptions{FieldManager: fieldManager})
	})
	if err != nil {
		return fmt.Errorf("patch vm %s/%s: %w", st.key.Namespace, st.names.VM, err)
	}
	st.vm = written
	return nil
}

// stop halts the machine and waits until nothing of it runs. A backup in
// progress refuses that; it is tried again until the time is over.
func (s *Store) stop(ctx context.Context, st *standing) error {
	if vm.WantsRunning(st.vm) {
		s.report(ctx, "stopping virtual machine "+st.names.VM)
		halted := change{
			// Harvester leaves its note about quota on a halted VM, where it would
			// read as the reason for the halt.
			"metadata": change{"annotations": change{vm.AnnotationQuota: nil}},
			"spec":     change{"runStrategy": kubevirtv1.RunStrategyHalted},
		}
		if st.vm.Spec.Running != nil {
			halted["spec"] = change{"runStrategy": kubevirtv1.RunStrategyHalted, "running": nil}
		}
		wait := backoff{next: s.pace.poll, longest: s.pace.look}
		for {
			err := s.patchMachine(ctx, st, halted)
			if err == nil {
				break
			}
			if !strings.Contains(err.Error(), "vmbackup in progress") {
				return err
			}
			s.report(ctx, "waiting for a backup of "+st.names.VM)
			if wait.pause(ctx, 0) != nil {
				return fmt.Errorf("stop instance %s: a backup of it did not end in time: %w", st.key, err)
			}
		}
	}
	return s.awaitStopped(ctx, st)
}

// awaitStopped waits for the printable status: Harvester's webhook judges by
// it, and KubeVirt writes it after the machine is gone.
func (s *Store) awaitStopped(ctx context.Context, st *standing) error {
	if st.vmi != nil {
		st.ended = st.vmi.UID
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	machines, instances := s.followMachine(inner, st)
	for st.vmi != nil || st.vm.Status.PrintableStatus != kubevirtv1.VirtualMachineStatusStopped {
		select {
		case <-ctx.Done():
			return fmt.Errorf("stop instance %s: virtual machine %s has status %s: %w", st.key, st.names.VM, st.vm.Status.PrintableStatus, ctx.Err())
		case machine := <-machines:
			if machine == nil {
				return fmt.Errorf("stop instance %s: its virtual machine %s was deleted meanwhile; apply again", st.key, st.names.VM)
			}
			if outdated(st.vm, machine) {
				continue
			}
			st.vm = machine
		case running := <-instances:
			if running != nil {
				st.ended = running.UID
			}
			st.vmi = running
		}
		if vm.WantsRunning(st.vm) {
			return fmt.Errorf("stop instance %s: somebody else started its virtual machine %s meanwhile; apply again", st.key, st.names.VM)
		}
	}
	return nil
}

// outdated says whether an event tells of a VM as it was before a change that
// is known: a watch begins with what the API server's cache has.
func outdated(known, told *kubevirtv1.VirtualMachine) bool {
	return known != nil && told != nil && known.UID == told.UID && told.Generation < known.Generation
}

// start lets the machine run. Harvester gives it the strategy of its own
// annotation, RerunOnFailure without one.
func (s *Store) start(ctx context.Context, st *standing) error {
	s.report(ctx, "starting virtual machine "+st.names.VM)
	spec := change{"runStrategy": kubevirtv1.RunStrategyAlways}
	if st.vm.Spec.Running != nil {
		spec["running"] = nil
	}
	return s.patchMachine(ctx, st, change{
		"metadata": change{"annotations": change{
			vm.AnnotationQuota: nil, vm.AnnotationRunStrategy: string(kubevirtv1.RunStrategyAlways),
		}},
		"spec": spec,
	})
}

// domain is the part of the machine's template that the class decides.
func (w *work) domain() change {
	c := w.wanted.Class
	memory := fmt.Sprintf("%dMi", c.MemoryMiB)
	return change{
		"cpu":    change{"cores": c.VCPU, "sockets": 1, "threads": 1},
		"memory": change{"guest": memory},
		"resources": change{"limits": change{
			"cpu": fmt.Sprint(c.VCPU), "memory": memory,
		}},
	}
}
