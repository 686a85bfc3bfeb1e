package stack

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/fixtures"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/network"
)

// steps is how a lab starts. What is independent runs at the same time.
func (s *Stack) steps() []step {
	server := []string{"kube-apiserver"}
	steps := []step{
		{name: "etcd", run: s.restoreAndStartEtcd},
		{name: "kube-apiserver", after: []string{"etcd"}, run: s.startAPIServer},
		{name: "fixtures", after: server, run: s.createFixtures},
		{name: "kube-controller-manager", after: server, run: s.startControllerManager},
		{name: "virt-api", after: []string{"fixtures"}, run: s.startVirtAPI},
		{name: "virt-controller", after: []string{"fixtures"}, run: s.startVirtController},
		{name: "harvester", after: []string{"fixtures"}, run: s.startHarvester},
		{name: "node", after: []string{"fixtures"}, run: s.startNode},
		{name: "proxy", after: server, run: s.startProxy},
		{name: "KubeVirt's webhooks", after: []string{"virt-api"}, run: s.registerKubeVirt},
		{name: "images", after: []string{"harvester", "node"}, run: s.importImages},
	}
	if s.lab.Guest != string(guest.Sim) {
		steps = append(steps, step{name: "packages", run: s.startPackages})
	}
	return steps
}

func (s *Stack) restoreAndStartEtcd(ctx context.Context) error {
	template, err := s.template()
	if err != nil {
		return err
	}
	if err := os.CopyFS(s.dir.Path("etcd"), os.DirFS(template+"/etcd")); err != nil {
		return fmt.Errorf("copy the etcd template: %w", err)
	}
	// CopyFS makes files that others may read; etcd wants its folder for itself.
	if err := os.Chmod(s.dir.Path("etcd"), 0o700); err != nil {
		return err
	}
	return s.startEtcd(ctx)
}

// createFixtures creates what differs between labs and needs no webhook.
func (s *Stack) createFixtures(ctx context.Context) error {
	c, err := s.client()
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(s.dir.PKI("ca.crt"))
	if err != nil {
		return err
	}
	// virt-api and virt-controller trust client certificates of this authority.
	bundle := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "kubevirt-ca"},
		Data:       map[string]string{"ca-bundle": string(authority)},
	}
	if err := c.Create(ctx, bundle); err != nil {
		return fmt.Errorf("create kubevirt-ca: %w", err)
	}
	return fixtures.Roles(ctx, c, s.root+"/examples/rbac")
}

func (s *Stack) createImages(ctx context.Context, c client.Client) error {
	for _, image := range fixtures.Images() {
		if err := fixtures.CreateImage(ctx, c, image, s.loopback("images")); err != nil {
			return err
		}
	}
	return nil
}

// importImages creates the images and waits until Harvester has imported
// every one that it can.
func (s *Stack) importImages(ctx context.Context) error {
	c, err := s.client()
	if err != nil {
		return err
	}
	if err := s.createImages(ctx, c); err != nil {
		return err
	}
	waiting := map[string]bool{}
	for _, image := range fixtures.Images() {
		if image.Progress == "" {
			waiting[image.Name] = true
		}
	}
	list := new(unstructured.UnstructuredList)
	list.SetAPIVersion("harvesterhci.io/v1beta1")
	list.SetKind("VirtualMachineImageList")
	events, err := c.Watch(ctx, list, client.InNamespace("default"))
	if err != nil {
		return fmt.Errorf("watch images: %w", err)
	}
	defer events.Stop()
	for len(waiting) > 0 {
		select {
		case event, open := <-events.ResultChan():
			if !open {
				return fmt.Errorf("watch images: it ended; still importing: %v", waiting)
			}
			image, ok := event.Object.(*unstructured.Unstructured)
			if ok && event.Type != watch.Deleted && fixtures.Imported(image) {
				delete(waiting, image.GetName())
			}
		case <-ctx.Done():
			return fmt.Errorf("still importing: %v: %w", waiting, ctx.Err())
		}
	}
	s.say("images imported")
	return nil
}

// registerKubeVirt does what KubeVirt's operator does once virt-api serves.
func (s *Stack) registerKubeVirt(ctx context.Context) error {
	template, err := s.template()
	if err != nil {
		return err
	}
	hooks, err := s.hooks(template)
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(s.dir.PKI("ca.crt"))
	if err != nil {
		return err
	}
	c, err := s.client()
	if err != nil {
		return err
	}
	for _, content := range hooks {
		hook := &unstructured.Unstructured{Object: content}
		if err := addressHook(hook, authority, int64(s.lab.Ports["virt-api"])); err != nil {
			return err
		}
		if err := c.Create(ctx, hook); err != nil {
			return fmt.Errorf("create %s %s: %w", hook.GetKind(), hook.GetName(), err)
		}
	}
	service := s.answers(s.lab.URL("apiserver")+"/apis/subresources.kubevirt.io/v1", "virtualmachines/restart")
	for service(ctx) != nil {
		select {
		case <-time.After(between):
		case <-ctx.Done():
			return fmt.Errorf("the aggregated API does not answer: %w", service(context.WithoutCancel(ctx)))
		}
	}
	s.say("KubeVirt's webhooks and subresources answer")
	return nil
}

// addressHook fills in where virt-api is: in an APIService's spec, or in each
// webhook of a configuration.
func addressHook(hook *unstructured.Unstructured, authority []byte, port int64) error {
	bundle := base64.StdEncoding.EncodeToString(authority)
	set := func(content map[string]any) error {
		content["caBundle"] = bundle
		return unstructured.SetNestedField(content, port, "service", "port")
	}
	if spec, ok := hook.Object["spec"].(map[string]any); ok {
		return set(spec)
	}
	webhooks, _ := hook.Object["webhooks"].([]any)
	if len(webhooks) == 0 {
		return fmt.Errorf("%s %s has no webhook", hook.GetKind(), hook.GetName())
	}
	for _, w := range webhooks {
		webhook, _ := w.(map[string]any)
		config, ok := webhook["clientConfig"].(map[string]any)
		if !ok {
			return fmt.Errorf("%s %s has a webhook without clientConfig", hook.GetKind(), hook.GetName())
		}
		if err := set(config); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stack) startNode(ctx context.Context) error {
	// Both nodes are made by the agent; the API server writes these fields in order.
	return s.startDaemon(ctx, "node", s.answers(s.lab.URL("apiserver")+"/api/v1/nodes/node2", `"type":"Ready","status":"True"`))
}

func (s *Stack) startProxy(ctx context.Context) error {
	return s.startDaemon(ctx, "proxy", listens(s.loopback("proxy"), s.loopback("proxy-control")))
}

func (s *Stack) startPackages(ctx context.Context) error {
	address := net.JoinHostPort(network.Host(s.lab.Network).String(), s.port("packages"))
	return s.startDaemon(ctx, "packages", listens(address))
}

func (s *Stack) loopback(use string) string { return net.JoinHostPort("127.0.0.1", s.port(use)) }

// listens makes a question for piece: does something listen on all addresses?
func listens(addresses ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, address := range addresses {
			connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
			if err != nil {
				return err
			}
			_ = connection.Close()
		}
		return nil
	}
}
