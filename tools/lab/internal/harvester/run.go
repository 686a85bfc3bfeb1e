// Package harvester runs Harvester's real admission webhooks, and those of its
// real controllers that the provider meets, against any API server: without
// Rancher, and without what Harvester's own binaries start beside them.
package harvester

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// Namespace is where Harvester believes to run.
const Namespace = "harvester-system"

// threads is how many objects each webhook cache and controller handles at once.
const threads = 2

// options are the flags of `controlplane harvester`.
type options struct {
	kubeconfig  string
	certificate string
	key         string
	authority   string
	port        int
}

// Run is the command `controlplane harvester`: it serves until it is ended.
func Run(args []string) error {
	var o options
	flags := flag.NewFlagSet("harvester", flag.ContinueOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "file that says where the API server is")
	flags.StringVar(&o.certificate, "cert", "", "certificate of the webhooks' server")
	flags.StringVar(&o.key, "key", "", "key of the webhooks' server")
	flags.StringVar(&o.authority, "ca", "", "certificate authority that signed it")
	flags.IntVar(&o.port, "port", 0, "loopback port of the webhooks' server")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("read %s: %w", o.kubeconfig, err)
	}
	config.QPS, config.Burst = 200, 400

	scheme, err := newScheme()
	if err != nil {
		return err
	}

	failed := make(chan error, 3)
	start := func(what string, f func() error) {
		begin := time.Now()
		if err := f(); err != nil {
			failed <- fmt.Errorf("start %s: %w", what, err)
			return
		}
		log.Printf("%s started after %v", what, time.Since(begin).Round(time.Millisecond))
	}
	go start("webhooks", func() error { return startWebhooks(ctx, config, o, failed) })
	go start("controllers", func() error { return startControllers(ctx, config, scheme) })
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}
