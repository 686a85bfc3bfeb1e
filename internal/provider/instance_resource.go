package provider

import (
	"context"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// How long the operations may take where timeouts says nothing.
const (
	defaultCreate = 30 * time.Minute
	defaultRead   = 2 * time.Minute
	defaultUpdate = 45 * time.Minute
	defaultDelete = 20 * time.Minute
)

// instanceResource is dbaas_instance.
type instanceResource struct{ *backend }

func newInstanceResource() resource.Resource { return &instanceResource{backend: new(backend)} }

// Metadata names the resource.
func (r *instanceResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_instance"
}

// ValidateConfig refuses two ways at once to get a password.
func (r *instanceResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config model
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if config.ManagePassword.ValueBool() && !config.SuppliedPassword.IsNull() {
		resp.Diagnostics.AddAttributeError(path.Root("master_password_wo"), "Two ways to get a password",
			"With manage_master_user_password = true the provider draws the password; master_password_wo supplies one. Leave one of the two out.")
	}
}

// Configure takes the provider's backend. While Terraform only validates, there
// is none.
func (r *instanceResource) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	if back, ok := req.ProviderData.(*backend); ok {
		r.backend = back
	}
}

// identity is the instance's place on the cluster.
type identity struct {
	Namespace types.String `tfsdk:"namespace"`
	Name      types.String `tfsdk:"name"`
}

// ImportState takes namespace/name, or the same as an identity. All else is
// read from the cluster.
func (r *instanceResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	place, err := importPlace(ctx, req)
	if err != nil {
		report(&resp.Diagnostics, "Cannot import", err)
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("namespace"), place.Namespace)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), place.Name)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, place)...)
}

func importPlace(ctx context.Context, req resource.ImportStateRequest) (identity, error) {
	var place identity
	if req.ID == "" && req.Identity != nil && !req.Identity.Raw.IsNull() {
		if diags := req.Identity.Get(ctx, &place); diags.HasError() {
			return identity{}, wrongType("identity", diags)
		}
	} else {
		namespace, name, found := strings.Cut(req.ID, "/")
		if !found {
			return identity{}, importFormatError(req.ID)
		}
		place = identity{Namespace: types.StringValue(namespace), Name: types.StringValue(name)}
	}
	if err := checkNamespace(place.Namespace.ValueString()); err != nil {
		return identity{}, err
	}
	return place, checkName(place.Name.ValueString())
}

// Read brings the state up to what stands. It never writes.
func (r *instanceResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	setIdentity(ctx, resp.Identity, &state, &resp.Diagnostics)
	if r.store == nil {
		resp.Diagnostics.AddWarning("Instance not read",
			"The provider's configuration is known only after apply, so "+state.key().String()+" was not read; the plan works with what the state says.\n\nApply what the configuration depends on first, with -target, to see what stands.")
		return
	}
	limit, diags := state.Timeouts.Read(ctx, defaultRead)
	resp.Diagnostics.Append(diags...)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r.refresh(ctx, &state, resp)
}

// setIdentity names the instance to Terraform: in every answer, also before
// RemoveResource, since Terraform 1.11 does not send the identity that it has
// and fails when none comes back.
func setIdentity(ctx context.Context, target *tfsdk.ResourceIdentity, m *model, diags *diag.Diagnostics) {
	if target != nil {
		diags.Append(target.Set(ctx, identity{Namespace: m.Namespace, Name: m.Name})...)
	}
}
