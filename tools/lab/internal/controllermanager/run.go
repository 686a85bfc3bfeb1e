// Package controllermanager is Kubernetes' controller manager with only the
// controllers that a lab needs: its flags, its configuration and its
// controllers' own constructors. The package of the real command links every
// controller, and with them the scheduler, the kubelet and all volume plugins:
// minutes of compiling for what a lab never starts.
package controllermanager

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version"
	manager "k8s.io/controller-manager/app"
	"k8s.io/controller-manager/pkg/healthz"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/config"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
)

// Run is the command `controlplane kube-controller-manager`, with the flags of
// the real one: it serves until it is ended.
func Run(args []string) error {
	o, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return fmt.Errorf("make options: %w", err)
	}
	flags := pflag.NewFlagSet("kube-controller-manager", pflag.ContinueOnError)
	flags.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	sets := o.Flags(known(), nil, nil)
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	// It watches every kind there is, deprecated ones too.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	if err := o.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("set feature gates: %w", err)
	}
	logs.InitLogs()
	defer logs.FlushLogs()
	if err := logsapi.ValidateAndApply(o.Logs, feature.DefaultFeatureGate); err != nil {
		return fmt.Errorf("set up logs: %w", err)
	}
	c, err := o.Config(known(), nil, nil)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return serve(ctx, c.Complete())
}

// serve answers /healthz, starts the controllers and waits for the end.
func serve(ctx context.Context, c *config.CompletedConfig) error {
	klog.FromContext(ctx).Info("Starting", "version", version.Get())
	mux := manager.NewBaseHandler(&c.ComponentConfig.Generic.Debugging, healthz.NewMutableHealthzHandler())
	handler := manager.BuildHandlerChain(mux, &c.Authorization, &c.Authentication)
	if _, _, err := c.SecureServing.Serve(handler, 0, ctx.Done()); err != nil {
		return fmt.Errorf("serve /healthz: %w", err)
	}
	e, err := newEnvironment(ctx, c)
	if err != nil {
		return err
	}
	for _, each := range controllers() {
		logger := klog.FromContext(ctx)
		if err := each.start(klog.NewContext(ctx, klog.LoggerWithName(logger, each.name)), e); err != nil {
			return fmt.Errorf("start controller %s: %w", each.name, err)
		}
		logger.Info("Started controller", "controller", each.name)
	}
	e.startInformers(ctx)
	<-ctx.Done()
	return nil
}
