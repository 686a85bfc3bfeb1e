package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	kubevirtv1 "kubevirt.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/knobs"
)

// kubelet plays the kubelets of both nodes: it starts and ends pods and runs the
// readiness probes of launchers.
type kubelet struct {
	*cluster
	kind     guest.Kind
	machines *machines
	as       record.EventRecorder

	mu     sync.Mutex
	probes map[types.UID]*running
}

// running is the probe of one pod.
type running struct {
	stop  context.CancelFunc
	ready bool
}

func newKubelet(c *cluster, kind guest.Kind, ms *machines, as record.EventRecorder) *kubelet {
	return &kubelet{cluster: c, kind: kind, machines: ms, as: as, probes: map[types.UID]*running{}}
}

func (k *kubelet) setup(mgr ctrl.Manager) error {
	bound := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.(*corev1.Pod).Spec.NodeName != "" || o.GetDeletionTimestamp() != nil
	})
	return ctrl.NewControllerManagedBy(mgr).Named("kubelet").
		For(&corev1.Pod{}, builder.WithPredicates(bound)).
		WatchesRawSource(source.Channel(k.machines.pods, &handler.EnqueueRequestForObject{})).
		Watches(onKnobs(k.cluster, &corev1.PodList{}, func(l client.ObjectList) []client.Object {
			return pointers(l.(*corev1.PodList).Items)
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(k)
}

func (k *kubelet) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	p := new(corev1.Pod)
	if err := k.Get(ctx, req.NamespacedName, p); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	m := k.machineOf(p)
	switch {
	case p.DeletionTimestamp != nil:
		return ctrl.Result{}, k.terminate(ctx, p, m)
	case p.Spec.NodeName == "":
		return ctrl.Result{}, nil
	case p.Status.Phase == corev1.PodPending:
		return k.run(ctx, p)
	case p.Status.Phase == corev1.PodRunning && (m != nil && m.exit() != nil || k.lost(p)):
		return ctrl.Result{}, k.finish(ctx, p, m)
	case p.Status.Phase == corev1.PodRunning:
		return k.refresh(ctx, p, m)
	}
	return ctrl.Result{}, nil
}

// machineOf is the guest that runs or ran in this pod, nil for another pod.
func (k *kubelet) machineOf(p *corev1.Pod) *machine {
	m := k.machines.get(types.UID(p.Labels[kubevirtv1.CreatedByLabel]))
	if machineName(p) == "" || m == nil || m.launcher() != client.ObjectKeyFromObject(p) {
		return nil
	}
	return m
}

// lost says whether a launcher was started by an earlier life of this agent, which
// took the guest with it as a node does that loses power.
func (k *kubelet) lost(p *corev1.Pod) bool {
	if machineName(p) == "" {
		return false
	}
	_, known := k.machines.seedOf(types.UID(p.Labels[kubevirtv1.CreatedByLabel]))
	return !known
}

// run starts a pod's containers. A launcher's Secrets are read now and never
// again: KubeVirt mounts them with subPath.
func (k *kubelet) run(ctx context.Context, p *corev1.Pod) (ctrl.Result, error) {
	if name := machineName(p); name != "" {
		if err := k.mountSeed(ctx, p, name); err != nil {
			if !apierrors.IsNotFound(err) {
				return ctrl.Result{}, err
			}
			k.as.Eventf(p, corev1.EventTypeWarning, "FailedMount", "MountVolume.SetUp failed for volume: %v", err)
			return ctrl.Result{RequeueAfter: time.Second}, nil
		}
	}
	if err := k.attachNetworks(ctx, p); err != nil {
		return ctrl.Result{}, err
	}
	old := p.DeepCopy()
	startPod(p)
	k.setReady(p, nil)
	return ctrl.Result{}, client.IgnoreNotFound(k.Status().Patch(ctx, p, client.StrategicMergeFrom(old)))
}

func (k *kubelet) mountSeed(ctx context.Context, p *corev1.Pod, machine string) error {
	vmi := new(kubevirtv1.VirtualMachineInstance)
	if err := k.live.Get(ctx, types.NamespacedName{Namespace: p.Namespace, Name: machine}, vmi); err != nil {
		return client.IgnoreNotFound(err)
	}
	seed, err := readSeed(vmi, func(name string, keys ...string) ([]byte, error) {
		s := new(corev1.Secret)
		if err := k.live.Get(ctx, types.NamespacedName{Namespace: p.Namespace, Name: name}, s); err != nil {
			return nil, err
		}
		for _, key := range keys {
			if data, ok := s.Data[key]; ok {
				return data, nil
			}
		}
		return nil, fmt.Errorf("read secret %s: it has none of the keys %v", name, keys)
	})
	if err != nil {
		return err
	}
	k.machines.keepSeed(vmi.UID, seed)
	return nil
}

// refresh keeps the Ready condition of a running pod and its probe.
func (k *kubelet) refresh(ctx context.Context, p *corev1.Pod, m *machine) (ctrl.Result, error) {
	if m != nil {
		k.startProbe(p, m)
	}
	old := p.DeepCopy()
	again := k.setReady(p, m)
	if !conditionsEqual(old, p) {
		if err := k.Status().Patch(ctx, p, client.StrategicMergeFrom(old)); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// setReady computes Ready and says when to look again (0 is never).
func (k *kubelet) setReady(p *corev1.Pod, m *machine) (again time.Duration) {
	probed := readinessProbe(p) != nil
	ready := !probed || k.isReady(p.UID)
	if m != nil {
		v := k.ofMachine(context.Background(), m.spec.Namespace, m.spec.Name)
		if half := v.Duration(knobs.ReadyFlaps); half > 0 {
			since := time.Since(m.booted)
			ready = since/half%2 == 0
			again = half - since%half
		}
	}
	markReady(p, ready)
	return again
}

func (k *kubelet) isReady(pod types.UID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.probes[pod]
	return r != nil && r.ready
}

// terminate ends a pod that is being deleted, once its guest has ended.
func (k *kubelet) terminate(ctx context.Context, p *corev1.Pod, m *machine) error {
	if m != nil && m.exit() == nil {
		grace := 30 * time.Second
		if p.DeletionGracePeriodSeconds != nil {
			grace = time.Duration(*p.DeletionGracePeriodSeconds) * time.Second
		}
		m.stop(grace, k.log)
		return nil
	}
	k.stopProbe(p.UID)
	return client.IgnoreNotFound(k.Delete(ctx, p, client.GracePeriodSeconds(0), client.Preconditions{UID: &p.UID}))
}

// finish ends the containers of a launcher whose guest has ended or is lost.
func (k *kubelet) finish(ctx context.Context, p *corev1.Pod, m *machine) error {
	k.stopProbe(p.UID)
	old := p.DeepCopy()
	if m != nil && m.phase() == kubevirtv1.Succeeded {
		endPod(p, corev1.PodSucceeded, 0)
	} else {
		endPod(p, corev1.PodFailed, 1)
	}
	return client.IgnoreNotFound(k.Status().Patch(ctx, p, client.StrategicMergeFrom(old)))
}
