package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	kubevirtv1 "kubevirt.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/knobs"
)

// scheduler binds pods to nodes.
type scheduler struct {
	*cluster
	as record.EventRecorder
}

func (s *scheduler) setup(mgr ctrl.Manager) error {
	waiting := predicate.NewPredicateFuncs(func(o client.Object) bool {
		p := o.(*corev1.Pod)
		return p.Spec.NodeName == "" && p.DeletionTimestamp == nil
	})
	return ctrl.NewControllerManagedBy(mgr).Named("scheduler").
		For(&corev1.Pod{}, builder.WithPredicates(waiting)).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(s.waitingPods)).
		Watches(onKnobs(s.cluster, &corev1.PodList{}, func(l client.ObjectList) []client.Object {
			return unbound(l.(*corev1.PodList))
		})).
		Complete(s)
}

// waitingPods are the pods that a claim's change may help.
func (s *scheduler) waitingPods(ctx context.Context, claim client.Object) []reconcile.Request {
	l := new(corev1.PodList)
	if err := s.List(ctx, l, client.InNamespace(claim.GetNamespace())); err != nil {
		return nil
	}
	var out []reconcile.Request
	for _, p := range unbound(l) {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
	}
	return out
}

func unbound(l *corev1.PodList) []client.Object {
	var out []client.Object
	for i := range l.Items {
		if l.Items[i].Spec.NodeName == "" {
			out = append(out, &l.Items[i])
		}
	}
	return out
}

func (s *scheduler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	p := new(corev1.Pod)
	if err := s.Get(ctx, req.NamespacedName, p); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if p.Spec.NodeName != "" || p.DeletionTimestamp != nil || len(p.Spec.SchedulingGates) > 0 {
		return ctrl.Result{}, nil
	}
	obstacle, err := s.obstacle(ctx, p)
	if err != nil {
		return ctrl.Result{}, err
	}
	if obstacle != "" {
		return ctrl.Result{RequeueAfter: lookAgain}, s.refuse(ctx, p, obstacle)
	}
	node, err := s.choose(ctx, p)
	if err != nil {
		return ctrl.Result{}, err
	}
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	if err := s.SubResource("binding").Create(ctx, p, binding); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return ctrl.Result{}, nil // bound or gone meanwhile
		}
		return ctrl.Result{}, fmt.Errorf("bind pod: %w", err)
	}
	s.as.Eventf(p, corev1.EventTypeNormal, "Scheduled", "Successfully assigned %s/%s to %s", p.Namespace, p.Name, node)
	return ctrl.Result{}, nil
}

// obstacle says, in the scheduler's words, why no node can take the pod.
func (s *scheduler) obstacle(ctx context.Context, p *corev1.Pod) (string, error) {
	if name := machineName(p); name != "" {
		if v := s.ofMachine(ctx, p.Namespace, name); v.On(knobs.Unschedulable) {
			return "0/2 nodes are available: 2 " + v[knobs.Unschedulable] + ". preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.", nil
		}
	}
	for _, vol := range p.Spec.Volumes {
		if vol.PersistentVolumeClaim == nil {
			continue
		}
		claim := new(corev1.PersistentVolumeClaim)
		err := s.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: vol.PersistentVolumeClaim.ClaimName}, claim)
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Sprintf("0/2 nodes are available: persistentvolumeclaim %q not found. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.", vol.PersistentVolumeClaim.ClaimName), nil
		case err != nil:
			return "", err
		case claim.Status.Phase != corev1.ClaimBound:
			return "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.", nil
		}
	}
	return "", nil
}

func (s *scheduler) refuse(ctx context.Context, p *corev1.Pod, why string) error {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Message == why {
			return nil
		}
	}
	old := p.DeepCopy()
	setPodCondition(p, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: why})
	if err := s.Status().Patch(ctx, p, client.StrategicMergeFrom(old)); err != nil {
		return client.IgnoreNotFound(err)
	}
	s.as.Event(p, corev1.EventTypeWarning, "FailedScheduling", why)
	return nil
}

// choose takes the first node, but for the target of a migration the node where
// the machine is not.
func (s *scheduler) choose(ctx context.Context, p *corev1.Pod) (string, error) {
	if p.Labels[kubevirtv1.MigrationJobLabel] == "" {
		return node1, nil
	}
	l := new(corev1.PodList)
	same := client.MatchingLabels{kubevirtv1.CreatedByLabel: p.Labels[kubevirtv1.CreatedByLabel]}
	if err := s.List(ctx, l, client.InNamespace(p.Namespace), same); err != nil {
		return "", err
	}
	for _, other := range l.Items {
		if other.Name != p.Name && other.Spec.NodeName == node1 && other.Status.Phase == corev1.PodRunning {
			return node2, nil
		}
	}
	return node1, nil
}

// machineName is the VirtualMachineInstance of a launcher pod, "" for other pods.
func machineName(p *corev1.Pod) string {
	if p.Labels[kubevirtv1.AppLabel] != "virt-launcher" {
		return ""
	}
	return p.Annotations[kubevirtv1.DomainAnnotation]
}

// setPodCondition adds or replaces a condition and says whether it changed.
func setPodCondition(p *corev1.Pod, c corev1.PodCondition) bool {
	c.LastTransitionTime = metav1.Now()
	for i, old := range p.Status.Conditions {
		if old.Type != c.Type {
			continue
		}
		if old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message {
			return false
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		p.Status.Conditions[i] = c
		return true
	}
	p.Status.Conditions = append(p.Status.Conditions, c)
	return true
}
