package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/wso2/terraform-provider-dbaas/internal/class"
	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

// ModifyPlan settles what is known of the planned instance and refuses what
// could only fail later.
func (r *instanceResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	switch {
	case req.Plan.Raw.IsNull():
		r.planDestroy(ctx, req, resp)
	case req.State.Raw.IsNull():
		r.planCreate(ctx, req, resp)
	default:
		r.planUpdate(ctx, req, resp)
	}
}

func (r *instanceResource) planDestroy(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(setIntent(ctx, resp.Private, instance.IntentDestroy)...)
	if !resp.Diagnostics.HasError() {
		r.guard(ctx, &state, "destroy", &resp.Diagnostics)
	}
}

// guard refuses to plan the end of a protected instance, by what the state
// says and, where it can be asked, by what the cluster says. Delete asks again.
func (r *instanceResource) guard(ctx context.Context, state *model, verb string, diags *diag.Diagnostics) {
	if state.DeletionProtection.ValueBool() && served(state.Status.ValueString()) {
		protected(diags, state, verb, "the state")
		return
	}
	if r.store == nil {
		return
	}
	limit, more := state.Timeouts.Read(ctx, defaultRead)
	diags.Append(more...)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	standing, err := r.store.Get(ctx, state.key())
	switch {
	case errors.Is(err, instance.ErrNotFound):
	case err != nil:
		report(diags, "Cannot check whether the instance is protected", err)
	case standing.OperatorManaged:
		refused(diags, path.Empty(), fmt.Sprintf("Cannot %s an instance of the DBaaS operator", verb),
			fmt.Sprintf("%s belongs to the DBaaS operator. The provider reads such an instance and never changes or deletes it.", state.key()),
			handOver)
	case standing.InstanceID != state.InstanceID.ValueString() ||
		standing.OwnerID != "" && standing.OwnerID != state.OwnerID.ValueString():
		// Not ours any more: Delete leaves it alone and says so. Without its
		// Secret an instance has no owner, and is as protected as before.
	case standing.DeletionProtection && standing.EverAvailable:
		protected(diags, state, verb, "the cluster")
	case !standing.MachineKnown && state.DeletionProtection.ValueBool() && standing.EverAvailable && standing.StorageGiB > 0:
		// The VM was lost, and with it what the cluster knew; the data was not.
		protected(diags, state, verb, "the state")
	}
}

func protected(diags *diag.Diagnostics, state *model, verb, source string) {
	refused(diags, path.Root("deletion_protection"), "Instance is protected",
		fmt.Sprintf("The plan would %s %s and its data, but %s says that its deletion_protection is on. Nothing was sent.", verb, state.key(), source),
		fmt.Sprintf("To keep the instance, undo what makes the plan %s it. To really lose it, apply deletion_protection = false first.", verb))
}

func (r *instanceResource) planCreate(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	// The intent is left as it is: this is also the second half of a planned
	// replace, whose first half recorded it.
	var config, plan model
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	plan.fillDefaults(config, r.namespace)
	if plan.mode(config) != instance.PasswordGenerated {
		plan.MasterPassword = types.StringNull()
	}
	plan.TagsAll = allTags(plan.Tags, r.tags)
	plan.setGrafanaURL()
	size := r.planClass(&plan, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	if resp.Diagnostics.HasError() || r.store == nil || size == nil || !plan.settled() || config.SuppliedPassword.IsUnknown() {
		return
	}
	spec, err := plan.spec(ctx, config, *size)
	if err != nil {
		report(&resp.Diagnostics, "Invalid instance", err)
		return
	}
	limit, more := plan.Timeouts.Read(ctx, defaultRead)
	resp.Diagnostics.Append(more...)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	findings, err := r.store.Check(ctx, spec)
	if err != nil {
		report(&resp.Diagnostics, "Cannot check the planned instance", err)
	}
	for _, found := range findings {
		add(&resp.Diagnostics, found)
	}
}

// planClass fills in what the class decides; nil when that is not known.
func (r *instanceResource) planClass(plan *model, diags *diag.Diagnostics) *class.Class {
	if r.classes == nil || plan.InstanceClass.IsUnknown() {
		return nil
	}
	size, err := r.classes.Lookup(plan.InstanceClass.ValueString())
	if err != nil {
		unknownClass(diags, err)
		return nil
	}
	plan.VCPU, plan.MemoryMiB, plan.MaxConnections = number(size.VCPU), number(size.MemoryMiB), number(size.MaxConnections)
	return &size
}

func unknownClass(diags *diag.Diagnostics, err error) {
	diags.AddAttributeError(path.Root("instance_class"), "Unknown instance class",
		sentence(err.Error())+"\n\nMore classes can be added with instance_classes in the provider block.")
}

// add turns a finding of the live checks into a diagnostic.
func add(diags *diag.Diagnostics, found instance.Finding) {
	found.Detail = sentence(found.Detail)
	switch {
	case found.Warning && found.Field == "":
		diags.AddWarning(found.Summary, found.Detail)
	case found.Warning:
		diags.AddAttributeWarning(path.Root(string(found.Field)), found.Summary, found.Detail)
	case found.Field == "":
		diags.AddError(found.Summary, found.Detail)
	default:
		diags.AddAttributeError(path.Root(string(found.Field)), found.Summary, found.Detail)
	}
}

func (r *instanceResource) planUpdate(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var state, config, plan model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	moved := moves(state, config, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if len(moved) > 0 {
		resp.Diagnostics.Append(setIntent(ctx, resp.Private, instance.IntentRename)...)
		resp.RequiresReplace.Append(moved...)
		r.guard(ctx, &state, "replace", &resp.Diagnostics)
		return
	}
	resp.Diagnostics.Append(setIntent(ctx, resp.Private, instance.IntentOther)...)
	r.updateOf(state, config, &plan, &resp.Diagnostics).settle()
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	if !resp.Diagnostics.HasError() && plan.AllocatedStorage.ValueInt64() > state.AllocatedStorage.ValueInt64() {
		r.checkGrowth(ctx, &state, &resp.Diagnostics)
	}
}

// checkGrowth asks the cluster whether a volume can grow.
func (r *instanceResource) checkGrowth(ctx context.Context, state *model, diags *diag.Diagnostics) {
	if r.store == nil {
		return
	}
	limit, more := state.Timeouts.Read(ctx, defaultRead)
	diags.Append(more...)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	findings, err := r.store.CheckGrowth(ctx, state.StorageType.ValueString())
	if err != nil {
		report(diags, "Cannot check whether the volume can grow", err)
	}
	for _, found := range findings {
		add(diags, found)
	}
}

func (r *instanceResource) updateOf(state, config model, plan *model, diags *diag.Diagnostics) update {
	return update{state: state, config: config, plan: plan, tags: r.tags, classes: r.classes, diags: diags}
}
