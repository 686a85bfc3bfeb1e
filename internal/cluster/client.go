// Package cluster turns a provider's configuration into clients of a Harvester
// cluster.
package cluster

import (
	"fmt"

	harvesterv1 "github.com/harvester/harvester/pkg/apis/harvesterhci.io/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/gentype"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	storagev1client "k8s.io/client-go/kubernetes/typed/storage/v1"
	"k8s.io/client-go/rest"
	kubevirtv1 "kubevirt.io/client-go/kubevirt/typed/core/v1"
)

// A Client reaches one cluster. Its clients share one HTTP client, so one
// connection. Of Kubernetes' own API groups it has those that are needed:
// clients of all make the program a tenth larger.
type Client struct {
	Core    corev1client.CoreV1Interface
	Storage storagev1client.StorageV1Interface
	// VirtualMachines reaches KubeVirt's machines and their instances.
	VirtualMachines kubevirtv1.KubevirtV1Interface
	Dynamic         dynamic.Interface
	// Namespace is where instances are that name none.
	Namespace string

	images func(namespace string) *Images
}

// Images is a typed client of Harvester's VirtualMachineImages.
type Images = gentype.ClientWithList[*harvesterv1.VirtualMachineImage, *harvesterv1.VirtualMachineImageList]

// Images returns the client of a namespace's images.
func (c *Client) Images(namespace string) *Images { return c.images(namespace) }

// New returns the clients that the configuration describes, completed from the
// environment that env looks up. It dials nothing and runs no plugin: whether
// the cluster answers and lets us in shows at the first request.
func New(c Config, env func(string) string) (*Client, error) {
	t, err := resolve(c, env)
	if err != nil {
		return nil, err
	}
	t.rest.UserAgent = c.UserAgent
	// The API server has its own fairness; client-go's default of 5 requests a
	// second would make a large plan crawl.
	t.rest.QPS = -1
	// client-go would print the API's warnings on standard error.
	t.rest.WarningHandlerWithContext = rest.NoWarnings{}
	if t.rest.ExecProvider != nil {
		// Terraform talks to us over standard input.
		t.rest.ExecProvider.StdinUnavailable = true
		t.rest.ExecProvider.StdinUnavailableMessage = "a Terraform provider has no terminal"
	}
	return connect(t.rest, t.namespace)
}

func connect(config *rest.Config, namespace string) (*Client, error) {
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("prepare connection to %s: %w", config.Host, err)
	}
	core, err := corev1client.NewForConfigAndClient(config, shared)
	if err != nil {
		return nil, fmt.Errorf("prepare Kubernetes client: %w", err)
	}
	storage, err := storagev1client.NewForConfigAndClient(config, shared)
	if err != nil {
		return nil, fmt.Errorf("prepare storage client: %w", err)
	}
	kubevirt, err := kubevirtv1.NewForConfigAndClient(config, shared)
	if err != nil {
		return nil, fmt.Errorf("prepare KubeVirt client: %w", err)
	}
	dyn, err := dynamic.NewForConfigAndClient(config, shared)
	if err != nil {
		return nil, fmt.Errorf("prepare dynamic client: %w", err)
	}
	scheme := imageScheme()
	harvester := rest.CopyConfig(config)
	harvester.GroupVersion = &harvesterv1.SchemeGroupVersion
	harvester.APIPath = "/apis"
	harvester.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	images, err := rest.RESTClientForConfigAndClient(harvester, shared)
	if err != nil {
		return nil, fmt.Errorf("prepare Harvester client: %w", err)
	}
	return &Client{
		Core:            core,
		Storage:         storage,
		VirtualMachines: kubevirt,
		Dynamic:         dyn,
		Namespace:       namespace,
		images: func(namespace string) *Images {
			return gentype.NewClientWithList(
				"virtualmachineimages", images, runtime.NewParameterCodec(scheme), namespace,
				func() *harvesterv1.VirtualMachineImage { return new(harvesterv1.VirtualMachineImage) },
				func() *harvesterv1.VirtualMachineImageList { return new(harvesterv1.VirtualMachineImageList) })
		},
	}, nil
}

// imageScheme knows images and nothing else. Harvester's generated client set
// would know everything, and pull in half of Rancher.
func imageScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypes(harvesterv1.SchemeGroupVersion,
		&harvesterv1.VirtualMachineImage{}, &harvesterv1.VirtualMachineImageList{})
	metav1.AddToGroupVersion(s, harvesterv1.SchemeGroupVersion)
	// The API's error answers are of group version "v1".
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return s
}
