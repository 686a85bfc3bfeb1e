// Command noop is a provider that does nothing: what the framework alone costs
// at start.
package main

import (
	"context"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
)

type noop struct{}

func (noop) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "noop"
}
func (noop) Schema(context.Context, provider.SchemaRequest, *provider.SchemaResponse)          {}
func (noop) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {}
func (noop) DataSources(context.Context) []func() datasource.DataSource                        { return nil }

func (noop) Resources(context.Context) []func() resource.Resource { return nil }

func main() {
	serve := func() provider.Provider { return noop{} }
	if err := providerserver.Serve(context.Background(), serve, providerserver.ServeOpts{Address: "registry.terraform.io/wso2/noop"}); err != nil {
		log.Fatal(err)
	}
}
