package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/ephemeralvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

// credentialsEphemeral is the ephemeral resource dbaas_credentials.
type credentialsEphemeral struct{ *backend }

func newCredentialsEphemeral() ephemeral.EphemeralResource {
	return &credentialsEphemeral{backend: new(backend)}
}

// credentialsModel is dbaas_credentials.
type credentialsModel struct {
	ID            types.String `tfsdk:"id"`
	Namespace     types.String `tfsdk:"namespace"`
	Name          types.String `tfsdk:"name"`
	Username      types.String `tfsdk:"username"`
	Password      types.String `tfsdk:"password"`
	Host          types.String `tfsdk:"host"`
	Port          types.Int64  `tfsdk:"port"`
	DBName        types.String `tfsdk:"dbname"`
	CACertPEM     types.String `tfsdk:"ca_cert_pem"`
	ConnectionURI types.String `tfsdk:"connection_uri"`
	JDBCURL       types.String `tfsdk:"jdbc_url"`
	PGPass        types.String `tfsdk:"pgpass"`
}

// Metadata names the ephemeral resource.
func (r *credentialsEphemeral) Metadata(_ context.Context, req ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_credentials"
}

// Configure takes the provider's backend.
func (r *credentialsEphemeral) Configure(_ context.Context, req ephemeral.ConfigureRequest, _ *ephemeral.ConfigureResponse) {
	if back, ok := req.ProviderData.(*backend); ok {
		r.backend = back
	}
}

// ConfigValidators want one way to name the instance.
func (r *credentialsEphemeral) ConfigValidators(context.Context) []ephemeral.ConfigValidator {
	return []ephemeral.ConfigValidator{
		ephemeralvalidator.ExactlyOneOf(path.MatchRoot("id"), path.MatchRoot("name")),
		ephemeralvalidator.Conflicting(path.MatchRoot("id"), path.MatchRoot("namespace")),
	}
}

// Schema describes dbaas_credentials.
func (r *credentialsEphemeral) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	out := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: description}
	}
	secret := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Computed: true, Sensitive: true, MarkdownDescription: description}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "The master user's credentials of an instance, read from its Secret whenever they are needed and never stored in state or plan. Needs Terraform 1.10 or newer.\n\n" +
			"An instance that was never available yet, and a Secret from which something was removed, are errors. A stopped instance still has credentials.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				Optional: true, Validators: []validator.String{text("namespace/name", checkID)},
				MarkdownDescription: "`id` of the `dbaas_instance`: unknown until the instance was created, so that Terraform waits for it. Either this or `name`.",
			},
			"namespace": schema.StringAttribute{
				Optional: true, Validators: []validator.String{text("a DNS label", checkNamespace)},
				MarkdownDescription: "Namespace of the instance called `name`. Default: the provider's.",
			},
			"name": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.LengthAtLeast(1), text("a DNS label of at most 52 characters", checkName)},
				MarkdownDescription: "Name of the instance. Either this or `id`.",
			},
			"username":       out("The master user."),
			"password":       secret("The master user's password."),
			"host":           out("Address of the instance."),
			"port":           schema.Int64Attribute{Computed: true, MarkdownDescription: "Port of the instance."},
			"dbname":         out("The instance's database."),
			"ca_cert_pem":    out("Certificate, PEM, to verify the server with (`sslmode=verify-full`)."),
			"connection_uri": secret("`postgresql://` URI with user, password and `sslmode=verify-full`."),
			"jdbc_url":       secret("`jdbc:postgresql://` URL with user, password and `sslmode=verify-full`."),
			"pgpass":         secret("A line for a `.pgpass` file."),
		},
	}
}

// Open reads the credentials.
func (r *credentialsEphemeral) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var m credentialsModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() || !r.located(&resp.Diagnostics) {
		return
	}
	key := r.place(m.Namespace, m.Name)
	if id := m.ID.ValueString(); id != "" {
		key.Namespace, key.Name, _ = strings.Cut(id, "/")
	}
	ctx, cancel := context.WithTimeout(ctx, defaultRead)
	defer cancel()
	access, err := r.store.Access(ctx, key)
	if err != nil {
		report(&resp.Diagnostics, "Cannot read the credentials of "+key.String(), absent(err, key))
		return
	}
	resp.Diagnostics.Append(resp.Result.Set(ctx, m.filled(access))...)
}

func (m credentialsModel) filled(a *instance.Access) credentialsModel {
	login := login{Connection: a.Connection, password: string(a.Password)}
	m.Username, m.Password = types.StringValue(a.User), types.StringValue(string(a.Password))
	m.Host, m.Port, m.DBName = types.StringValue(a.Host), types.Int64Value(a.Port), types.StringValue(a.DBName)
	m.CACertPEM = types.StringValue(a.CACertPEM)
	m.ConnectionURI, m.JDBCURL = types.StringValue(login.uri()), types.StringValue(login.jdbc())
	m.PGPass = types.StringValue(login.pgpass())
	return m
}

func checkID(id string) error {
	namespace, name, found := strings.Cut(id, "/")
	if !found || checkNamespace(namespace) != nil || checkName(name) != nil {
		return importFormatError(id)
	}
	return nil
}
