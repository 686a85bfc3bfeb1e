// Command controlplane is every process of the lab's control plane but virt-api,
// chosen by its first argument, so that what they share is linked once:
// Kubernetes' API server and controllers, KubeVirt's controller, Harvester's
// webhooks and controllers, and the installers of their definitions.
package main

import (
	"fmt"
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	"kubevirt.io/kubevirt/pkg/virt-controller/watch"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/controllermanager"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/crd"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/harvester"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/kubevirt"
)

const usage = "usage: controlplane kube-apiserver|kube-controller-manager|virt-controller|harvester|crds|kubevirt-hooks [flags]"

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	// The commands read os.Args themselves.
	os.Args = os.Args[1:]
	switch os.Args[0] {
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		exit(controllermanager.Run(os.Args[1:]))
	case "virt-controller":
		watch.Execute()
	case "harvester":
		exit(harvester.Run(os.Args[1:]))
	case "crds":
		exit(crd.Run(os.Args[1:]))
	case "kubevirt-hooks":
		exit(kubevirt.WriteHooks(os.Stdout))
	default:
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
