package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	ephemeralschema "github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	frameworkprovider "github.com/hashicorp/terraform-plugin-framework/provider"
	providerschema "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/wso2/terraform-provider-dbaas/internal/provider"
)

// standIn is in the place of a provider that our examples are composed with: no
// registry is asked. It knows the arguments that we write, and keeps what it is
// given.
type standIn struct {
	name, source string
	arguments    []string // the provider block's, all texts
	resources    []standInResource
}

// standInResource has texts, maps of texts, and the block metadata.
type standInResource struct {
	name        string
	texts, maps []string
	numbers     []string
	metadata    bool
}

func standIns() []standIn {
	return []standIn{
		{name: "harvester", source: "harvester/harvester", resources: []standInResource{
			{name: "network", texts: []string{"name", "namespace", "cluster_network_name"}, numbers: []string{"vlan_id"}},
			{name: "image", texts: []string{"name", "namespace", "display_name", "source_type", "url"}},
		}},
		{name: "kubernetes", source: "hashicorp/kubernetes", resources: []standInResource{
			{name: "namespace", metadata: true}, {name: "secret", maps: []string{"data"}, metadata: true}, {name: "config_map", maps: []string{"data"}, metadata: true},
		}},
		{
			name: "postgresql", source: "cyrilgdn/postgresql", resources: []standInResource{{name: "database", texts: []string{"name"}}},
			arguments: []string{"host", "port", "database", "username", "password", "sslmode", "sslrootcert", "superuser", "connect_timeout"},
		},
		{name: "local", source: "hashicorp/local", resources: []standInResource{{name: "file", texts: []string{"content", "filename"}}}},
		{name: "vault", source: "hashicorp/vault"},
	}
}

func (p standIn) Metadata(_ context.Context, _ frameworkprovider.MetadataRequest, resp *frameworkprovider.MetadataResponse) {
	resp.TypeName = p.name
}

func (p standIn) Schema(_ context.Context, _ frameworkprovider.SchemaRequest, resp *frameworkprovider.SchemaResponse) {
	resp.Schema.Attributes = map[string]providerschema.Attribute{}
	for _, name := range p.arguments {
		resp.Schema.Attributes[name] = providerschema.StringAttribute{Optional: true}
	}
}

// Configure wants what is written to be there: an example that leaves the host
// or the password empty connects elsewhere.
func (p standIn) Configure(ctx context.Context, req frameworkprovider.ConfigureRequest, resp *frameworkprovider.ConfigureResponse) {
	values := map[string]string{}
	for _, name := range []string{"host", "username", "password"} {
		for _, known := range p.arguments {
			if known == name {
				var value types.String
				resp.Diagnostics.Append(req.Config.GetAttribute(ctx, pathOf(name), &value)...)
				values[name] = value.ValueString()
			}
		}
	}
	for name, value := range values {
		if value == "" {
			resp.Diagnostics.AddError("the provider "+p.name+" lacks "+name, fmt.Sprint(values["host"], values["username"]))
		}
	}
}

func (p standIn) DataSources(context.Context) []func() datasource.DataSource { return nil }

func (p standIn) Resources(context.Context) []func() resource.Resource {
	var all []func() resource.Resource
	for _, r := range p.resources {
		all = append(all, func() resource.Resource { return r })
	}
	return all
}

func (p standIn) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	if p.name != "vault" {
		return nil
	}
	return []func() ephemeral.EphemeralResource{func() ephemeral.EphemeralResource { return vaultSecret{} }}
}

func (r standInResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + r.name
}

func (r standInResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema.Attributes = map[string]schema.Attribute{}
	for _, name := range r.texts {
		resp.Schema.Attributes[name] = schema.StringAttribute{Optional: true}
	}
	for _, name := range r.numbers {
		resp.Schema.Attributes[name] = schema.Int64Attribute{Optional: true}
	}
	for _, name := range r.maps {
		resp.Schema.Attributes[name] = schema.MapAttribute{ElementType: types.StringType, Optional: true}
	}
	if r.metadata {
		resp.Schema.Blocks = map[string]schema.Block{"metadata": schema.ListNestedBlock{NestedObject: schema.NestedBlockObject{Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{Optional: true}, "namespace": schema.StringAttribute{Optional: true},
			"labels": schema.MapAttribute{ElementType: types.StringType, Optional: true},
		}}}}
	}
}

func (r standInResource) Create(_ context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	resp.State.Raw = req.Plan.Raw
}

func (r standInResource) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}

func (r standInResource) Update(_ context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	resp.State.Raw = req.Plan.Raw
}

func (r standInResource) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

// vaultSecret is Vault's ephemeral secret.
type vaultSecret struct{}

func (vaultSecret) Metadata(_ context.Context, req ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_kv_secret_v2"
}

func (vaultSecret) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema.Attributes = map[string]ephemeralschema.Attribute{
		"mount": ephemeralschema.StringAttribute{Required: true}, "name": ephemeralschema.StringAttribute{Required: true},
		"data": ephemeralschema.MapAttribute{ElementType: types.StringType, Computed: true},
	}
}

func (vaultSecret) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	resp.Result.Raw = req.Config.Raw
	resp.Diagnostics.Append(resp.Result.SetAttribute(ctx, pathOf("data"), map[string]string{"password": "one-from-the-vault"})...)
}

// serveWithStandIns is serve, with the stand-ins beside. The provider sees an
// environment with a kubeconfig's path and nothing else.
func serveWithStandIns(t *testing.T, kubeconfig string) []string {
	t.Helper()
	served := map[string]func() tfprotov6.ProviderServer{
		address("wso2/dbaas"): providerserver.NewProtocol6(provider.NewWithEnvironment("test", func(name string) string {
			return map[string]string{"KUBE_CONFIG_PATH": kubeconfig}[name]
		})()),
	}
	for _, p := range standIns() {
		served[address(p.source)] = providerserver.NewProtocol6(p)
	}
	attach := map[string]any{}
	for name, server := range served {
		ctx, stop := context.WithCancel(context.Background())
		configs, closed := make(chan *plugin.ReattachConfig), make(chan struct{})
		go func() {
			_ = tf6server.Serve(name, server, tf6server.WithDebug(ctx, configs, closed), tf6server.WithLoggingSink(t))
		}()
		t.Cleanup(func() { stop(); <-closed })
		c := <-configs
		attach[name] = map[string]any{
			"Protocol": c.Protocol, "ProtocolVersion": c.ProtocolVersion, "Pid": c.Pid, "Test": true,
			"Addr": map[string]any{"Network": c.Addr.Network(), "String": c.Addr.String()},
		}
	}
	all, err := json.Marshal(attach)
	must(t, err)
	return []string{"TF_REATTACH_PROVIDERS=" + string(all)}
}
