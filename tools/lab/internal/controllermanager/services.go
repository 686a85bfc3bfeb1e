package controllermanager

import (
	"context"

	"k8s.io/kubernetes/pkg/controller/endpoint"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/endpointslicemirroring"
)

func startEndpoints(ctx context.Context, e *environment) error {
	core, settings := e.informers.Core().V1(), e.settings.EndpointController
	go endpoint.NewEndpointController(ctx, core.Pods(), core.Services(), core.Endpoints(),
		e.clients.ClientOrDie("endpoint-controller"), settings.EndpointUpdatesBatchPeriod.Duration,
	).Run(ctx, int(settings.ConcurrentEndpointSyncs))
	return nil
}

func startEndpointSlice(ctx context.Context, e *environment) error {
	core, settings := e.informers.Core().V1(), e.settings.EndpointSliceController
	go endpointslice.NewController(ctx, core.Pods(), core.Services(), core.Nodes(), e.informers.Discovery().V1().EndpointSlices(),
		settings.MaxEndpointsPerSlice, e.clients.ClientOrDie("endpointslice-controller"), settings.EndpointUpdatesBatchPeriod.Duration,
	).Run(ctx, int(settings.ConcurrentServiceEndpointSyncs))
	return nil
}

func startEndpointSliceMirroring(ctx context.Context, e *environment) error {
	core, settings := e.informers.Core().V1(), e.settings.EndpointSliceMirroringController
	go endpointslicemirroring.NewController(ctx, core.Endpoints(), e.informers.Discovery().V1().EndpointSlices(), core.Services(),
		settings.MirroringMaxEndpointsPerSubset, e.clients.ClientOrDie("endpointslicemirroring-controller"),
		settings.MirroringEndpointUpdatesBatchPeriod.Duration,
	).Run(ctx, int(settings.MirroringConcurrentServiceEndpointSyncs))
	return nil
}
