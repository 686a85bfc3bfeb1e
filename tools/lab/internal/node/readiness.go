package node

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/knobs"
)

// libvirtDelay is what virt-controller adds to a probe's initial delay, for
// libvirt to start (LibvirtStartupDelay).
const libvirtDelay = 10 * time.Second

// readinessProbe is the probe of a launcher's guest.
func readinessProbe(p *corev1.Pod) *corev1.Probe {
	if machineName(p) == "" {
		return nil
	}
	for _, c := range p.Spec.Containers {
		if c.Name == compute {
			return c.ReadinessProbe
		}
	}
	return nil
}

// startProbe begins to probe the pod's guest, once.
func (k *kubelet) startProbe(p *corev1.Pod, m *machine) {
	spec := readinessProbe(p)
	if spec == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.probes[p.UID] != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &running{stop: stop}
	k.probes[p.UID] = r
	pod, key := p.DeepCopy(), client.ObjectKeyFromObject(p)
	probing := &probing{
		spec:  spec,
		delay: k.probeDelay(p, spec),
		try:   func(ctx context.Context) (bool, string) { return k.try(ctx, spec, m) },
		failed: func(output string) {
			k.as.Eventf(containerRef(pod), corev1.EventTypeWarning, "Unhealthy", "Readiness probe failed: %s", output)
		},
		changed: func(ready bool) {
			k.mu.Lock()
			r.ready = ready
			k.mu.Unlock()
			k.machines.wakePod(key)
		},
	}
	go probing.run(ctx)
}

// probeDelay is the time until the first try. A simulated guest has no libvirt to
// wait for.
func (k *kubelet) probeDelay(p *corev1.Pod, spec *corev1.Probe) time.Duration {
	delay := time.Duration(spec.InitialDelaySeconds) * time.Second
	if k.kind == guest.Sim {
		return max(0, delay-libvirtDelay)
	}
	return max(0, delay-time.Since(startTime(p)))
}

// try runs the probe once, as the knobs let it.
func (k *kubelet) try(ctx context.Context, spec *corev1.Probe, m *machine) (bool, string) {
	v := k.ofMachine(ctx, m.spec.Namespace, m.spec.Name)
	switch {
	case v.On(knobs.ProbeFails):
		return false, v[knobs.ProbeFails]
	case v.On(knobs.NeverReady), time.Since(m.booted) < v.Duration(knobs.ReadyAfter):
		return false, ""
	case v.On(knobs.NoAgent):
		return false, virtProbeLog("Failed executing the command", guest.ErrNoAgent)
	case spec.Exec == nil:
		return true, "" // an HTTP or TCP probe would need the pod's network
	}
	p := parseGuestProbe(spec.Exec.Command)
	if p == nil {
		return false, "command not found in the launcher: " + spec.Exec.Command[0]
	}
	return p.ask(ctx, m)
}

func (k *kubelet) stopProbe(pod types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.probes[pod]; r != nil {
		r.stop()
		delete(k.probes, pod)
	}
}

// containerRef points an event at the compute container, as kubelet's do.
func containerRef(p *corev1.Pod) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
		FieldPath: "spec.containers{" + compute + "}",
	}
}
