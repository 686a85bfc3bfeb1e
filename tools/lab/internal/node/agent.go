// Package node plays the machines of a Harvester cluster: everything that on a
// real one runs on nodes or talks to hardware. Scheduler and kubelet, KubeVirt's
// virt-handler, Longhorn with its CSI driver, and CDI; the rest of the control
// plane is real. Knobs (package knobs) make each of them misbehave.
package node

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	harvesterv1 "github.com/harvester/harvester/pkg/apis/harvesterhci.io/v1beta1"
	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	kubevirtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/state"
)

// Options say which lab the agent serves.
type Options struct {
	Dir state.Dir
	Lab *state.Lab
	// Kind and Backend are the guests. Run closes the Backend.
	Kind    guest.Kind
	Backend guest.Backend
	// Config reaches the API server as virt-handler's user.
	Config *rest.Config
	// ImageBytes is the virtual size of the guest image.
	ImageBytes int64
	Log        *slog.Logger
}

// cluster is what every part of the agent has of the cluster.
type cluster struct {
	client.Client
	// live reads from the API server, past the cache.
	live   client.Reader
	events record.EventRecorder
	log    *slog.Logger
}

// Run serves until ctx ends, then stops every guest.
func Run(ctx context.Context, o Options) (err error) {
	defer func() {
		if closeErr := o.Backend.Close(); closeErr != nil && err == nil {
			err = fmt.Errorf("stop the guests: %w", closeErr)
		}
	}()
	mgr, err := newManager(o)
	if err != nil {
		return err
	}
	c := &cluster{
		Client: mgr.GetClient(), live: mgr.GetAPIReader(),
		events: mgr.GetEventRecorderFor("lab-node"), log: o.Log,
	}
	machines := newMachines(o)
	parts := []interface{ setup(ctrl.Manager) error }{
		&knobWatch{cluster: c, dir: o.Dir},
		&scheduler{cluster: c, as: mgr.GetEventRecorderFor("default-scheduler")},
		newKubelet(c, o.Kind, machines, mgr.GetEventRecorderFor("kubelet")),
		&virtHandler{cluster: c, machines: machines, as: mgr.GetEventRecorderFor("virt-handler")},
		&provisioner{cluster: c, backend: o.Backend, as: mgr.GetEventRecorderFor("driver.longhorn.io")},
		&resizer{cluster: c, backend: o.Backend, as: mgr.GetEventRecorderFor("external-resizer driver.longhorn.io")},
		&reclaimer{cluster: c, backend: o.Backend},
		&backingImages{cluster: c, bytes: o.ImageBytes},
		&importer{cluster: c},
		&profiles{cluster: c},
		&misfortune{cluster: c},
	}
	for _, p := range parts {
		if err := p.setup(mgr); err != nil {
			return fmt.Errorf("set up the node agent: %w", err)
		}
	}
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return keepNodes(ctx, c, o.Lab) })); err != nil {
		return fmt.Errorf("set up the nodes: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return mgr.Start(ctx) })
	g.Go(func() error { return serveKubelet(ctx, o, c, machines) })
	g.Go(func() error { return serveImages(ctx, o.Lab.Ports["images"], o.ImageBytes) })
	g.Go(func() error { return serveCommands(ctx, o.Dir, c, machines) })
	return g.Wait()
}

func newManager(o Options) (ctrl.Manager, error) {
	// Not o.Log: controller-runtime says much about each start and stop.
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, kubevirtv1.AddToScheme, cdiv1.AddToScheme, longhornv1.AddToScheme, harvesterv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	config := rest.CopyConfig(o.Config)
	config.QPS = -1
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 server.Options{BindAddress: "0"},
		GracefulShutdownTimeout: new(5 * time.Second),
	})
	if err != nil {
		return nil, fmt.Errorf("connect to the lab's API server: %w", err)
	}
	return mgr, nil
}

// serve runs an HTTP server until ctx ends.
func serve(ctx context.Context, s *http.Server, listen func() error) error {
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := listen(); ctx.Err() == nil {
		return err
	}
	return nil
}
