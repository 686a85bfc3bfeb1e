package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/wso2/terraform-provider-dbaas/internal/class"
	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

func importFormatError(id string) error {
	return fmt.Errorf("the id %q is not namespace/name, such as tenant-acme/orders", id)
}

// Create makes the instance and waits until it serves. From the moment when a
// virtual machine may stand, the state names it, whatever happens afterwards.
func (r *instanceResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var config, plan model
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() || !r.ready(&resp.Diagnostics) {
		return
	}
	plan.fillDefaults(config, r.namespace)
	plan.TagsAll = allTags(plan.Tags, r.tags)
	size := r.planClass(&plan, &resp.Diagnostics)
	if size == nil {
		return
	}
	spec, err := plan.spec(ctx, config, *size)
	if err != nil {
		report(&resp.Diagnostics, "Invalid instance", err)
		return
	}
	limit, diags := plan.Timeouts.Create(ctx, defaultCreate)
	resp.Diagnostics.Append(diags...)
	wait, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	save := func(in *instance.Instance) {
		m := modelOf(in, plan, r.tags)
		resp.Diagnostics.Append(saveKept(ctx, &resp.State, req.Plan, m)...)
		setIdentity(ctx, resp.Identity, &m, &resp.Diagnostics)
	}
	made, err := r.store.Create(wait, spec, save)
	if made == nil {
		// Whatever was accepted belongs to somebody else now, or is gone.
		resp.State.RemoveResource(ctx)
		resp.Identity.Raw = tftypes.NewValue(resp.Identity.Schema.Type().TerraformType(ctx), nil)
	} else {
		save(made)
		warn(&resp.Diagnostics, "Instance was created", made.Warnings)
	}
	if err != nil {
		report(&resp.Diagnostics, "Cannot create instance "+spec.Key().String(), err)
	}
}

// refresh reads the instance into the response.
func (r *instanceResource) refresh(ctx context.Context, state *model, resp *resource.ReadResponse) {
	in, err := r.store.Get(ctx, state.key())
	if errors.Is(err, instance.ErrNotFound) {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		report(&resp.Diagnostics, "Cannot read instance "+state.key().String(), err)
		return
	}
	m := modelOf(in, *state, r.tags)
	if known := state.InstanceID.ValueString(); known != "" && known != in.InstanceID {
		resp.Diagnostics.AddWarning("Another instance stands under this name",
			fmt.Sprintf("%s has the instance id %s, the state's is %s: it was made anew outside of this state. Nothing here changes or deletes it; `terraform state rm` and `terraform import` take it over.", state.key(), in.InstanceID, known))
	}
	warn(&resp.Diagnostics, "Instance "+state.key().String(), in.Warnings)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

// Update brings the instance to what is planned, and finishes what an earlier
// apply left.
func (r *instanceResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var state, config, plan model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	setIdentity(ctx, resp.Identity, &state, &resp.Diagnostics)
	// What was unknown at plan is known now: compare it before any write.
	settled := plan
	u := r.updateOf(state, config, &settled, &resp.Diagnostics)
	u.settle()
	if resp.Diagnostics.HasError() || !r.ready(&resp.Diagnostics) {
		return
	}
	if !u.work() {
		resp.Diagnostics.Append(resp.State.Set(ctx, settled)...)
		return
	}
	limit, diags := plan.Timeouts.Update(ctx, defaultUpdate)
	resp.Diagnostics.Append(diags...)
	wait, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	spec, err := settled.spec(ctx, config, settled.size())
	if err != nil {
		report(&resp.Diagnostics, "Invalid instance", err)
		return
	}
	spec.Master.PriorVersion, spec.Master.PriorRotation = numeral(state.PasswordVersion), numeral(state.PasswordRotation)
	changed, err := r.store.Update(wait, state.key(), spec)
	if changed != nil {
		warn(&resp.Diagnostics, "Instance "+state.key().String(), changed.Warnings)
	}
	switch {
	case err != nil && changed != nil:
		// What was not done must show in the next plan, so nothing is promised.
		failed := plan
		failed.keepComputed(state)
		resp.Diagnostics.Append(resp.State.Set(ctx, modelOf(changed, failed, r.tags))...)
	case err == nil:
		resp.Diagnostics.Append(saveKept(ctx, &resp.State, req.Plan, modelOf(changed, plan, r.tags))...)
	}
	if err != nil {
		report(&resp.Diagnostics, "Cannot update instance "+state.key().String(), err)
	}
}

// size is what the plan says the class is.
func (m *model) size() class.Class {
	return class.Class{VCPU: m.VCPU.ValueInt64(), MemoryMiB: m.MemoryMiB.ValueInt64(), MaxConnections: m.MaxConnections.ValueInt64()}
}

// Delete ends the instance, or refuses to, by why Terraform wants it.
func (r *instanceResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() || !r.ready(&resp.Diagnostics) {
		return
	}
	limit, diags := state.Timeouts.Delete(ctx, defaultDelete)
	resp.Diagnostics.Append(diags...)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	warnings, err := r.store.Delete(ctx, instance.DeleteRequest{
		Key: state.key(), Intent: intentOf(ctx, req.Private), Retain: state.DeletionPolicy.ValueString() == policyRetain,
	})
	warn(&resp.Diagnostics, "Instance "+state.key().String(), warnings)
	if err != nil {
		report(&resp.Diagnostics, "Cannot delete instance "+state.key().String(), err)
	}
}

// ready says whether there is a cluster to act on, and how large classes are.
func (r *instanceResource) ready(diags *diag.Diagnostics) bool {
	return r.located(diags) && r.sized(diags)
}

// saveKept saves what was read, except what the plan promised: Terraform takes
// a different value for a bug. Drift in it shows at the next refresh.
func saveKept(ctx context.Context, target *tfsdk.State, plan tfsdk.Plan, read model) diag.Diagnostics {
	diags := target.Set(ctx, read)
	if diags.HasError() {
		return diags
	}
	kept, err := promised(plan.Raw, target.Raw)
	if err != nil {
		diags.AddAttributeError(path.Empty(), "Cannot save the state", sentence(err.Error())+"\n\nTry again. If the error stays, "+fault)
		return diags
	}
	target.Raw = kept
	return diags
}

// promised is read with every known attribute of plan in its place.
func promised(plan, read tftypes.Value) (tftypes.Value, error) {
	var planned, result map[string]tftypes.Value
	if err := plan.As(&planned); err != nil {
		return tftypes.Value{}, fmt.Errorf("read plan: %w", err)
	}
	if err := read.As(&result); err != nil {
		return tftypes.Value{}, fmt.Errorf("read state: %w", err)
	}
	result = maps.Clone(result)
	for name, value := range planned {
		if value.IsFullyKnown() {
			result[name] = value
		}
	}
	return tftypes.NewValue(read.Type(), result), nil
}
