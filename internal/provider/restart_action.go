package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

// restartAction is the action dbaas_restart.
type restartAction struct{ *backend }

func newRestartAction() action.Action { return &restartAction{backend: new(backend)} }

// restartModel is dbaas_restart.
type restartModel struct {
	ID      types.String `tfsdk:"id"`
	Timeout types.String `tfsdk:"timeout"`
}

// Metadata names the action.
func (a *restartAction) Metadata(_ context.Context, req action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_restart"
}

// Configure takes the provider's backend.
func (a *restartAction) Configure(_ context.Context, req action.ConfigureRequest, _ *action.ConfigureResponse) {
	if back, ok := req.ProviderData.(*backend); ok {
		a.backend = back
	}
}

// Schema describes dbaas_restart.
func (a *restartAction) Schema(_ context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Stops the virtual machine of an instance, starts it, and returns when the database is available again. Needs Terraform 1.14 or newer; " +
			"before, two applies with `running = false` and `running = true` do the same. An instance that is stopped, that another tool manages, or on which work is left unfinished is refused.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				Required: true, Validators: []validator.String{text("namespace/name", checkID)},
				MarkdownDescription: "`id` of the `dbaas_instance`: `namespace/name`.",
			},
			"timeout": schema.StringAttribute{
				Optional: true, Validators: []validator.String{text("a duration", checkDuration)},
				MarkdownDescription: "How long the restart may take, as a duration such as `20m`. Default `45m`.",
			},
		},
	}
}

func checkDuration(duration string) error {
	if d, err := time.ParseDuration(duration); err != nil || d <= 0 {
		return fmt.Errorf(`%q is not a duration such as "20m" or "1h30m"`, duration)
	}
	return nil
}

// Invoke restarts the instance.
func (a *restartAction) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var m restartModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() || !a.located(&resp.Diagnostics) {
		return
	}
	limit := defaultUpdate
	if given, err := time.ParseDuration(m.Timeout.ValueString()); err == nil {
		limit = given
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var key instance.Key
	key.Namespace, key.Name, _ = strings.Cut(m.ID.ValueString(), "/")
	store := a.store.Reporting(func(_ context.Context, message string) {
		resp.SendProgress(action.InvokeProgressEvent{Message: message})
	})
	err := store.Restart(ctx, key)
	if errors.Is(err, instance.ErrNotFound) {
		err = absent(err, key)
	}
	if err != nil {
		report(&resp.Diagnostics, "Cannot restart instance "+key.String(), err)
	}
}
