// Package provider is the Terraform side: schemas, plans and state. What
// happens on the cluster is package instance's; no Kubernetes type is seen here.
package provider

import (
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-framework-validators/providervalidator"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/wso2/terraform-provider-dbaas/internal/class"
	"github.com/wso2/terraform-provider-dbaas/internal/cluster"
	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

// dbaas is the provider.
type dbaas struct {
	version string
	// getenv is os.Getenv, or the environment of a test.
	getenv func(string) string
}

// backend is what the configured provider gives its resources.
type backend struct {
	// store is nil while the provider's configuration is not known yet, as when
	// the cluster is made by the same apply.
	store *instance.Store
	// namespace is where instances go by default, empty while not known.
	namespace string
	// classes is nil while instance_classes is not known.
	classes class.Catalogue
	// tags are the provider's default_tags, unknown while not known.
	tags types.Map
}

// New returns the provider's constructor. Version is the release, or "dev".
func New(version string) func() provider.Provider {
	return NewWithEnvironment(version, os.Getenv)
}

// NewWithEnvironment is New with another environment than the process's.
func NewWithEnvironment(version string, getenv func(string) string) func() provider.Provider {
	return func() provider.Provider { return &dbaas{version: version, getenv: getenv} }
}

// Metadata names the provider.
func (p *dbaas) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "dbaas"
	resp.Version = p.version
}

// ConfigValidators refuse pairs of arguments of which one would be ignored.
func (p *dbaas) ConfigValidators(context.Context) []provider.ConfigValidator {
	return []provider.ConfigValidator{
		providervalidator.Conflicting(path.MatchRoot("config_path"), path.MatchRoot("config_paths"), path.MatchRoot("kubeconfig")),
		providervalidator.RequiredTogether(path.MatchRoot("client_certificate"), path.MatchRoot("client_key")),
	}
}

// Configure makes the clients. It dials nothing: a cluster that cannot be
// reached is told by the first request that needs it.
func (p *dbaas) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var config providerModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	back := new(backend)
	back.tags = config.DefaultTags
	resp.ResourceData, resp.DataSourceData, resp.EphemeralResourceData, resp.ActionData = back, back, back, back

	if wholly(config.InstanceClasses) {
		classes, err := config.classes(ctx)
		if err != nil {
			resp.Diagnostics.AddAttributeError(path.Root("instance_classes"), "Invalid instance classes", sentence(err.Error()))
			return
		}
		back.classes = classes
	}
	if !config.connectionKnown() {
		return
	}
	wanted := config.connection()
	wanted.UserAgent = "terraform-provider-dbaas/" + p.version + " Terraform/" + req.TerraformVersion
	client, err := cluster.New(wanted, p.getenv)
	if err != nil {
		report(&resp.Diagnostics, "Cannot connect to a cluster", &instance.RefusalError{
			Err:    err,
			Advice: "Correct the provider block, or the environment variable that stands in for it. Nothing was sent yet.",
		})
		return
	}
	back.namespace = client.Namespace
	back.store = instance.New(client, instance.Options{
		Report: func(ctx context.Context, message string) { tflog.Info(ctx, message) },
	})
}

// Resources lists the resources.
func (p *dbaas) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{newInstanceResource}
}

// EphemeralResources lists the ephemeral resources.
func (p *dbaas) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{newCredentialsEphemeral}
}

// Functions lists the functions.
func (p *dbaas) Functions(context.Context) []func() function.Function {
	return []func() function.Function{newConnectionURIFunction, newJDBCURLFunction}
}

// DataSources lists the data sources.
func (p *dbaas) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{newInstanceData, newInstancesData, newClassesData, newImageData}
}

// Actions lists the actions.
func (p *dbaas) Actions(context.Context) []func() action.Action {
	return []func() action.Action{newRestartAction}
}

// located says whether there is a cluster to talk to.
func (b *backend) located(diags *diag.Diagnostics) bool {
	if b.store == nil {
		unconfigured(diags, "The provider block has values that are still unknown, so there is no cluster to talk to.")
	}
	return b.store != nil
}

// sized says whether the classes are known.
func (b *backend) sized(diags *diag.Diagnostics) bool {
	if b.classes == nil {
		unconfigured(diags, "The provider block's instance_classes are still unknown.")
	}
	return b.classes != nil
}

func unconfigured(diags *diag.Diagnostics, why string) {
	diags.AddError("Provider is not configured", why+"\n\nApply what they depend on first, with -target.")
}

// place is an instance's key by its two arguments; the namespace is the
// provider's where none is given.
func (b *backend) place(namespace, name types.String) instance.Key {
	key := instance.Key{Namespace: namespace.ValueString(), Name: name.ValueString()}
	if key.Namespace == "" {
		key.Namespace = b.namespace
	}
	return key
}
