package harvester

import (
	"context"
	"fmt"

	harvesterv1 "github.com/harvester/harvester/pkg/apis/harvesterhci.io/v1beta1"
	"github.com/harvester/harvester/pkg/config"
	globalsettings "github.com/harvester/harvester/pkg/controller/global/settings"
	"github.com/harvester/harvester/pkg/controller/master/image"
	"github.com/harvester/harvester/pkg/controller/master/keypair"
	"github.com/harvester/harvester/pkg/controller/master/migration"
	"github.com/harvester/harvester/pkg/controller/master/pvc"
	"github.com/harvester/harvester/pkg/controller/master/resourcequota"
	"github.com/harvester/harvester/pkg/controller/master/storageclass"
	"github.com/harvester/harvester/pkg/controller/master/template"
	"github.com/harvester/harvester/pkg/controller/master/virtualmachine"
	"github.com/harvester/harvester/pkg/indexeres"
	"github.com/rancher/lasso/pkg/controller"
	"github.com/rancher/wrangler/v3/pkg/generic"
	"github.com/rancher/wrangler/v3/pkg/schemes"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// newScheme returns what Harvester's pkg/server has as Scheme. Importing it
// there would compile Rancher's whole API server, Helm and SQLite with it.
//
// What the imported clients registered is part of it, and the webhooks register
// more when they start, without a lock: it is made before anything starts.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(harvesterv1.AddToScheme, kubevirtv1.AddToScheme, schemes.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("make scheme: %w", err)
	}
	return scheme, nil
}

// startControllers starts the controllers that act on what the provider
// creates. Those of backups are left out on purpose: a backup then stays in
// progress until somebody deletes it, which is what a test of "a backup in
// progress refuses a stop" needs.
func startControllers(ctx context.Context, cfg *rest.Config, scheme *runtime.Scheme) error {
	factory, err := controller.NewSharedControllerFactoryFromConfig(cfg, scheme)
	if err != nil {
		return fmt.Errorf("make controller factory: %w", err)
	}
	ctx, scaled, err := config.SetupScaled(ctx, cfg, &generic.FactoryOptions{SharedControllerFactory: factory})
	if err != nil {
		return fmt.Errorf("make clients: %w", err)
	}
	o := config.Options{Namespace: Namespace, Threadiness: threads}
	if err := indexeres.Setup(ctx, nil, nil, o); err != nil {
		return fmt.Errorf("make indexes: %w", err)
	}
	// This creates every settings.harvesterhci.io with its default.
	if err := globalsettings.Register(ctx, scaled, nil, o); err != nil {
		return fmt.Errorf("create settings: %w", err)
	}
	for _, register := range []func(context.Context, *config.Management, config.Options) error{
		image.Register, keypair.Register, migration.Register, pvc.Register, resourcequota.Register,
		storageclass.Register, template.Register, virtualmachine.Register,
	} {
		if err := register(ctx, scaled.Management, o); err != nil {
			return fmt.Errorf("register controller: %w", err)
		}
	}
	return scaled.Management.Start(threads)
}
