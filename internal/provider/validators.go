package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// text makes a validator of a check of one string. A value that is null or not
// known yet is not checked.
func text(description string, check func(string) error) validator.String {
	return textRule{description: description, check: check}
}

type textRule struct {
	description string
	check       func(string) error
}

// Description says what the rule accepts.
func (r textRule) Description(context.Context) string { return r.description }

// MarkdownDescription says what the rule accepts.
func (r textRule) MarkdownDescription(context.Context) string { return r.description }

// ValidateString reports the check's error at the argument.
func (r textRule) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if err := r.check(req.ConfigValue.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid "+lastStep(req.Path), sentence(err.Error()))
	}
}

// gatewayInNetwork checks the parts of static_network against each other.
type gatewayInNetwork struct{}

// Description says what the rule accepts.
func (gatewayInNetwork) Description(context.Context) string {
	return "the gateway must be another host of the address's network"
}

// MarkdownDescription says what the rule accepts.
func (r gatewayInNetwork) MarkdownDescription(ctx context.Context) string { return r.Description(ctx) }

// ValidateObject reports a gateway that the address cannot reach.
func (gatewayInNetwork) ValidateObject(_ context.Context, req validator.ObjectRequest, resp *validator.ObjectResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	address, haveAddress := req.ConfigValue.Attributes()["address"].(types.String)
	gateway, haveGateway := req.ConfigValue.Attributes()["gateway"].(types.String)
	if !haveAddress || !haveGateway || address.IsUnknown() || gateway.IsUnknown() {
		return
	}
	if err := checkGateway(address.ValueString(), gateway.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path.AtName("gateway"), "Invalid gateway", sentence(err.Error()))
	}
}
