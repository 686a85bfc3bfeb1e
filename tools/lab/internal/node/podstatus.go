package node

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// compute is the launcher's container that runs the guest.
const compute = "compute"

// startPod makes every container run.
func startPod(p *corev1.Pod) {
	now := metav1.Now()
	h := crc32.ChecksumIEEE([]byte(p.UID))
	ip := fmt.Sprintf("10.52.%d.%d", h>>8&0xff, h&0xff)
	p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &now
	p.Status.HostIP, p.Status.PodIP = "127.0.0.1", ip
	p.Status.HostIPs, p.Status.PodIPs = []corev1.HostIP{{IP: "127.0.0.1"}}, []corev1.PodIP{{IP: ip}}
	p.Status.InitContainerStatuses, p.Status.ContainerStatuses = nil, nil
	for _, c := range p.Spec.InitContainers {
		s := runningContainer(p, c, now)
		if c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways {
			s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now, ContainerID: s.ContainerID}}
			s.Started = new(false)
		}
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, s)
	}
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, runningContainer(p, c, now))
	}
	for _, t := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReadyToStartContainers, corev1.PodInitialized} {
		setPodCondition(p, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue})
	}
}

func runningContainer(p *corev1.Pod, c corev1.Container, now metav1.Time) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: c.Image, Ready: true, Started: new(true),
		ContainerID: "containerd://" + string(p.UID) + "-" + c.Name,
		State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
	}
}

// endPod makes every container end with the code.
func endPod(p *corev1.Pod, phase corev1.PodPhase, code int32) {
	now := metav1.Now()
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	p.Status.Phase = phase
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			if list[i].State.Running == nil {
				continue
			}
			list[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: code, Reason: reason, StartedAt: list[i].State.Running.StartedAt, FinishedAt: now, ContainerID: list[i].ContainerID,
			}}
			list[i].Ready, list[i].Started = false, new(false)
		}
	}
	for _, t := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
		setPodCondition(p, corev1.PodCondition{Type: t, Status: corev1.ConditionFalse, Reason: "PodCompleted"})
	}
}

// markReady writes whether the compute container, and so the pod, is ready, in
// kubelet's words.
func markReady(p *corev1.Pod, ready bool) {
	for i := range p.Status.ContainerStatuses {
		if s := &p.Status.ContainerStatuses[i]; s.Name == compute || len(p.Spec.Containers) == 1 {
			s.Ready = ready
		}
	}
	if !ready {
		for _, t := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
			setPodCondition(p, corev1.PodCondition{Type: t, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", Message: "containers with unready status: [" + compute + "]"})
		}
		return
	}
	setPodCondition(p, corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue})
	var closed []string
	for _, g := range p.Spec.ReadinessGates {
		if !podConditionTrue(p, g.ConditionType) {
			closed = append(closed, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", g.ConditionType))
		}
	}
	if len(closed) > 0 {
		setPodCondition(p, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ReadinessGatesNotReady", Message: strings.Join(closed, ", ")})
		return
	}
	setPodCondition(p, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
}

func podConditionTrue(p *corev1.Pod, t corev1.PodConditionType) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == t {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// conditionsEqual says whether two pods have the same status as far as it concerns
// readiness.
func conditionsEqual(a, b *corev1.Pod) bool {
	return equality.Semantic.DeepEqual(a.Status.Conditions, b.Status.Conditions) && equality.Semantic.DeepEqual(a.Status.ContainerStatuses, b.Status.ContainerStatuses)
}

// Annotations of the network plumbing working group that Multus reads and writes.
const (
	networksAnnotation      = "k8s.v1.cni.cncf.io/networks"
	networkStatusAnnotation = "k8s.v1.cni.cncf.io/network-status"
)

// attachNetworks reports the pod's networks as Multus does: virt-controller takes
// the names of the pod's interfaces from there.
func (k *kubelet) attachNetworks(ctx context.Context, p *corev1.Pod) error {
	text := p.Annotations[networksAnnotation]
	if text == "" || p.Annotations[networkStatusAnnotation] != "" {
		return nil
	}
	var wanted []struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		Interface string `json:"interface"`
		MAC       string `json:"mac"`
	}
	if err := json.Unmarshal([]byte(text), &wanted); err != nil {
		return fmt.Errorf("parse the networks of pod %s: %w", p.Name, err)
	}
	type network struct {
		Name      string   `json:"name"`
		Interface string   `json:"interface,omitempty"`
		IPs       []string `json:"ips,omitempty"`
		MAC       string   `json:"mac,omitempty"`
		Default   bool     `json:"default,omitempty"`
		DNS       struct{} `json:"dns"`
	}
	status := []network{{Name: "k8s-pod-network", Interface: "eth0", Default: true}}
	for _, w := range wanted {
		status = append(status, network{Name: w.Namespace + "/" + w.Name, Interface: w.Interface, MAC: w.MAC})
	}
	data, err := json.Marshal(status)
	if err != nil {
		return err
	}
	old := p.DeepCopy()
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, networkStatusAnnotation, string(data))
	return client.IgnoreNotFound(k.Patch(ctx, p, client.MergeFrom(old)))
}
