// Package crd installs the custom resource definitions of everything a
// Harvester cluster has and the provider meets: KubeVirt's and CDI's from their
// Go packages, the others from the YAML files that their modules carry.
package crd

import (
	"context"
	"flag"
	"fmt"
	"log"
	"time"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	extclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
)

// parallel is how many definitions are created at a time: with more the API
// server is no faster on two cores.
const parallel = 8

// Run is the command `controlplane crds -kubeconfig FILE PATH…`. A path is a
// YAML file or a folder of them.
func Run(args []string) error {
	flags := flag.NewFlagSet("crds", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "file that says where the API server is")
	if err := flags.Parse(args); err != nil {
		return err
	}
	start := time.Now()
	definitions, err := load(flags.Args())
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("read %s: %w", *kubeconfig, err)
	}
	config.QPS, config.Burst = 500, 500
	all, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := install(context.Background(), all.ApiextensionsV1().CustomResourceDefinitions(), definitions); err != nil {
		return err
	}
	log.Printf("%d definitions established after %v", len(definitions), time.Since(start).Round(time.Millisecond))
	return nil
}

// install creates the definitions and returns when the API server serves them.
func install(ctx context.Context, client extclient.CustomResourceDefinitionInterface, definitions []*extv1.CustomResourceDefinition) error {
	free, results := make(chan struct{}, parallel), make(chan error)
	for _, d := range definitions {
		go func() {
			free <- struct{}{}
			defer func() { <-free }()
			_, err := client.Create(ctx, d, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				err = nil
			}
			if err != nil {
				err = fmt.Errorf("create definition %s: %w", d.Name, err)
			}
			results <- err
		}()
	}
	var first error
	for range definitions {
		if err := <-results; err != nil && first == nil {
			first = err
		}
	}
	if first != nil {
		return first
	}
	return waitEstablished(ctx, client, len(definitions))
}

// waitEstablished watches until so many definitions are served.
func waitEstablished(ctx context.Context, client extclient.CustomResourceDefinitionInterface, want int) error {
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list definitions: %w", err)
	}
	served := map[string]bool{}
	for i := range list.Items {
		served[list.Items[i].Name] = established(&list.Items[i])
	}
	watch, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return fmt.Errorf("watch definitions: %w", err)
	}
	defer watch.Stop()
	for count(served) < want {
		event, open := <-watch.ResultChan()
		if !open {
			return fmt.Errorf("watch definitions: the server ended the watch with %d of %d served", count(served), want)
		}
		if d, ok := event.Object.(*extv1.CustomResourceDefinition); ok {
			served[d.Name] = established(d)
		}
	}
	return nil
}

func established(d *extv1.CustomResourceDefinition) bool {
	for _, c := range d.Status.Conditions {
		if c.Type == extv1.Established {
			return c.Status == extv1.ConditionTrue
		}
	}
	return false
}

func count(served map[string]bool) int {
	n := 0
	for _, yes := range served {
		if yes {
			n++
		}
	}
	return n
}
