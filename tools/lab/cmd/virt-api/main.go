// Command virt-api runs KubeVirt's API server: its admission webhooks and the
// start, stop and restart subresources of VirtualMachines.
//
// It is a binary of its own because the package's initialisation costs 3 s and
// 250 MiB in every process that links it.
package main

import (
	"kubevirt.io/client-go/log"
	"kubevirt.io/kubevirt/pkg/service"
	virtapi "kubevirt.io/kubevirt/pkg/virt-api"
)

func main() {
	log.InitializeLogging("virt-api")
	app := virtapi.NewVirtApi()
	service.Setup(app) // reads the flags
	app.Execute()
}
