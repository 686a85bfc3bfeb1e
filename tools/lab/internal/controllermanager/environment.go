package controllermanager

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/restmapper"
	manager "k8s.io/controller-manager/app"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/config"
	settings "k8s.io/kubernetes/pkg/controller/apis/config"
)

// rediscovery is after how long the controllers learn of new kinds.
const rediscovery = 30 * time.Second

// environment is what the controllers have in common; as CreateControllerContext of
// k8s.io/kubernetes/cmd/kube-controller-manager/app makes it.
type environment struct {
	settings  settings.KubeControllerManagerConfiguration
	clients   clientbuilder.SimpleControllerClientBuilder
	informers informers.SharedInformerFactory
	// objects has an informer for every kind, if need be of its metadata only.
	objects  informerfactory.InformerFactory
	metadata metadata.Interface
	mapper   *restmapper.DeferredDiscoveryRESTMapper
	// started is closed once the informers run.
	started chan struct{}
}

func newEnvironment(ctx context.Context, c *config.CompletedConfig) (*environment, error) {
	e := &environment{
		settings: c.ComponentConfig,
		clients:  clientbuilder.SimpleControllerClientBuilder{ClientConfig: c.Kubeconfig},
		started:  make(chan struct{}),
	}
	client, err := e.clients.Client("shared-informers")
	if err != nil {
		return nil, err
	}
	e.informers = informers.NewSharedInformerFactoryWithOptions(client, e.resync(), informers.WithTransform(withoutManagedFields))
	if e.metadata, err = metadata.NewForConfig(e.clients.ConfigOrDie("metadata-informers")); err != nil {
		return nil, err
	}
	e.objects = informerfactory.NewInformerFactory(e.informers,
		metadatainformer.NewSharedInformerFactoryWithOptions(e.metadata, e.resync(), metadatainformer.WithTransform(withoutManagedFields)))
	if err := manager.WaitForAPIServer(client, 10*time.Second); err != nil {
		return nil, fmt.Errorf("wait for the API server: %w", err)
	}
	discovery, err := e.clients.DiscoveryClient("controller-discovery")
	if err != nil {
		return nil, err
	}
	e.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery))
	go wait.Until(e.mapper.Reset, rediscovery, ctx.Done())
	return e, nil
}

// resync is different each time, so that not everything is listed at once.
func (e *environment) resync() time.Duration {
	return time.Duration(float64(e.settings.Generic.MinResyncPeriod.Nanoseconds()) * (rand.Float64() + 1))
}

func (e *environment) startInformers(ctx context.Context) {
	e.informers.Start(ctx.Done())
	e.objects.Start(ctx.Done())
	close(e.started)
}

// withoutManagedFields saves memory: no controller reads them.
func withoutManagedFields(object any) (any, error) {
	if m, err := meta.Accessor(object); err == nil && m.GetManagedFields() != nil {
		m.SetManagedFields(nil)
	}
	return object, nil
}
