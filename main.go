// Command terraform-provider-dbaas serves the dbaas provider to Terraform and
// OpenTofu.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/wso2/terraform-provider-dbaas/internal/provider"
)

// version is set by the linker when a release is built.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "serve to a debugger such as delve, and print how Terraform attaches to it")
	flag.Parse()

	err := providerserver.Serve(context.Background(), provider.New(version), providerserver.ServeOpts{
		Address: "registry.terraform.io/wso2/dbaas",
		Debug:   *debug,
	})
	if err != nil {
		log.Fatal(err)
	}
}
