package controllermanager

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/util/cert"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/quota/v1/install"
)

// A starter is a controller and what starts it, as the function start…Controller
// of k8s.io/kubernetes/cmd/kube-controller-manager/app does.
type starter struct {
	name  string
	start func(context.Context, *environment) error
}

// controllers are all that a lab runs. Without the node lifecycle's, a node here
// is as healthy as the lab says.
func controllers() []starter {
	return []starter{
		{names.EndpointsController, startEndpoints},
		{names.EndpointSliceController, startEndpointSlice},
		{names.EndpointSliceMirroringController, startEndpointSliceMirroring},
		{names.ResourceQuotaController, startResourceQuota},
		{names.NamespaceController, startNamespace},
		{names.ServiceAccountController, startServiceAccount},
		{names.GarbageCollectorController, startGarbageCollector},
		{names.DisruptionController, startDisruption},
		{names.PersistentVolumeBinderController, startVolumeBinder},
		{names.PersistentVolumeClaimProtectionController, startClaimProtection},
		{names.PersistentVolumeProtectionController, startVolumeProtection},
		{names.RootCACertificatePublisherController, startRootCAPublisher},
	}
}

// known are the names of the controllers.
func known() []string {
	var out []string
	for _, each := range controllers() {
		out = append(out, each.name)
	}
	return out
}

func startResourceQuota(ctx context.Context, e *environment) error {
	client := e.clients.ClientOrDie("resourcequota-controller")
	discover := e.clients.DiscoveryClientOrDie("resourcequota-controller").ServerPreferredNamespacedResources
	quota := install.NewQuotaConfigurationForControllers(generic.ListerFuncForResourceFunc(e.informers.ForResource))
	c, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:               client.CoreV1(),
		ResourceQuotaInformer:     e.informers.Core().V1().ResourceQuotas(),
		ResyncPeriod:              controller.StaticResyncPeriodFunc(e.settings.ResourceQuotaController.ResourceQuotaSyncPeriod.Duration),
		InformerFactory:           e.objects,
		ReplenishmentResyncPeriod: e.resync,
		DiscoveryFunc:             discover,
		IgnoredResourcesFunc:      quota.IgnoredResources,
		InformersStarted:          e.started,
		Registry:                  generic.NewRegistry(quota.Evaluators()),
		UpdateFilter:              install.DefaultUpdateFilter(),
	})
	if err != nil {
		return err
	}
	go c.Run(ctx, int(e.settings.ResourceQuotaController.ConcurrentResourceQuotaSyncs))
	go c.Sync(ctx, discover, rediscovery)
	return nil
}

func startNamespace(ctx context.Context, e *environment) error {
	config := e.clients.ConfigOrDie("namespace-controller")
	config.QPS *= 20 // deleting a namespace takes very many requests
	config.Burst *= 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	go namespace.NewNamespaceController(ctx, client, objects, client.Discovery().ServerPreferredNamespacedResources,
		e.informers.Core().V1().Namespaces(), e.settings.NamespaceController.NamespaceSyncPeriod.Duration, corev1.FinalizerKubernetes,
	).Run(ctx, int(e.settings.NamespaceController.ConcurrentNamespaceSyncs))
	return nil
}

func startServiceAccount(ctx context.Context, e *environment) error {
	core := e.informers.Core().V1()
	c, err := serviceaccount.NewServiceAccountsController(core.ServiceAccounts(), core.Namespaces(),
		e.clients.ClientOrDie("service-account-controller"), serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return err
	}
	go c.Run(ctx, 1)
	return nil
}

func startGarbageCollector(ctx context.Context, e *environment) error {
	const name = "generic-garbage-collector"
	config := e.clients.ConfigOrDie(name)
	config.QPS *= 2 // each deletion is two requests
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	ignored := map[schema.GroupResource]struct{}{}
	for _, r := range e.settings.GarbageCollectorController.GCIgnoredResources {
		ignored[schema.GroupResource{Group: r.Group, Resource: r.Resource}] = struct{}{}
	}
	graph := garbagecollector.NewDependencyGraphBuilder(ctx, e.metadata, e.mapper, ignored, e.objects, e.started)
	c, err := garbagecollector.NewComposedGarbageCollector(ctx, e.clients.ClientOrDie(name), objects, e.mapper, graph)
	if err != nil {
		return err
	}
	const syncPeriod = 30 * time.Second
	go c.Run(ctx, int(e.settings.GarbageCollectorController.ConcurrentGCSyncs), syncPeriod)
	go c.Sync(ctx, e.clients.DiscoveryClientOrDie(name), syncPeriod)
	return nil
}

func startDisruption(ctx context.Context, e *environment) error {
	client := e.clients.ClientOrDie("disruption-controller")
	scales, err := scale.NewForConfig(e.clients.ConfigOrDie("disruption-controller"), e.mapper,
		dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(client.Discovery()))
	if err != nil {
		return err
	}
	core, apps := e.informers.Core().V1(), e.informers.Apps().V1()
	go disruption.NewDisruptionController(ctx, core.Pods(), e.informers.Policy().V1().PodDisruptionBudgets(),
		core.ReplicationControllers(), apps.ReplicaSets(), apps.Deployments(), apps.StatefulSets(),
		client, e.mapper, scales, client.Discovery(),
	).Run(ctx)
	return nil
}

func startRootCAPublisher(ctx context.Context, e *environment) error {
	authority, err := e.rootCA()
	if err != nil {
		return err
	}
	core := e.informers.Core().V1()
	c, err := rootcacertpublisher.NewPublisher(core.ConfigMaps(), core.Namespaces(), e.clients.ClientOrDie("root-ca-cert-publisher"), authority)
	if err != nil {
		return err
	}
	go c.Run(ctx, 1)
	return nil
}

// rootCA is what pods may trust.
func (e *environment) rootCA() ([]byte, error) {
	file := e.settings.SAController.RootCAFile
	if file == "" {
		return e.clients.ConfigOrDie("root-ca-cert-publisher").CAData, nil
	}
	authority, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the root CA: %w", err)
	}
	if _, err := cert.ParseCertsPEM(authority); err != nil {
		return nil, fmt.Errorf("read the root CA in %s: %w", file, err)
	}
	return authority, nil
}
