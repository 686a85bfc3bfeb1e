package node

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/state"
)

// Two nodes, so that a machine can migrate.
const (
	node1 = "node1"
	node2 = "node2"
)

// heartbeat is well below what makes a node unready (40 s) or, for KubeVirt, its
// virt-handler unresponsive (5 min).
const heartbeat = 10 * time.Second

// keepNodes creates the nodes and keeps them alive until ctx ends.
func keepNodes(ctx context.Context, c *cluster, lab *state.Lab) error {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		for _, name := range []string{node1, node2} {
			if err := beat(ctx, c, name, lab.Ports["kubelet"]); err != nil && ctx.Err() == nil {
				c.log.Warn("cannot keep a node alive", "node", name, "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func beat(ctx context.Context, c *cluster, name string, kubeletPort int) error {
	now := metav1.Now()
	beatTime, err := json.Marshal(now)
	if err != nil {
		return err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", corev1.LabelHostname: name,
		kubevirtv1.NodeSchedulable:                "true",
		"harvesterhci.io/managed":                 "true",
		"network.harvesterhci.io/mgmt":            "true",
		"cpu-timer.node.kubevirt.io/tsc-scalable": "true",
	}}}
	if err := c.Create(ctx, node.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create node: %w", err)
	}
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
		return fmt.Errorf("get node: %w", err)
	}
	old := node.DeepCopy()
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, kubevirtv1.VirtHandlerHeartbeat, string(beatTime[1:len(beatTime)-1]))
	if err := c.Patch(ctx, node, client.MergeFrom(old)); err != nil {
		return fmt.Errorf("patch node: %w", err)
	}
	old = node.DeepCopy()
	describe(node, kubeletPort, now)
	if err := c.Status().Patch(ctx, node, client.MergeFrom(old)); err != nil {
		return fmt.Errorf("patch the node's status: %w", err)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name}}
	_, err = controllerutil.CreateOrUpdate(ctx, directly{c.Client, c.live}, lease, func() error {
		lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: new(int32(40)), RenewTime: new(metav1.NowMicro())}
		return nil
	})
	return err
}

// directly reads past the cache: an informer for a kind that is only written
// would not pay.
type directly struct {
	client.Client
	live client.Reader
}

func (d directly) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return d.live.Get(ctx, key, o, opts...)
}

// describe fills in the status of a large and healthy node.
func describe(n *corev1.Node, kubeletPort int, now metav1.Time) {
	resources := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("1100"),
		"devices.kubevirt.io/kvm": resource.MustParse("1k"), "devices.kubevirt.io/tun": resource.MustParse("1k"), "devices.kubevirt.io/vhost-net": resource.MustParse("1k"),
	}
	n.Status.Capacity, n.Status.Allocatable = resources, resources
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}, {Type: corev1.NodeHostName, Address: n.Name}}
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(kubeletPort)
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "the lab's node agent serves", LastHeartbeatTime: now, LastTransitionTime: now}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			ready.LastTransitionTime = c.LastTransitionTime
		}
	}
	n.Status.Conditions = []corev1.NodeCondition{ready}
}
