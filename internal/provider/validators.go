package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

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

// elements makes a validator of a check of each element of a set. What is told
// stands at the set: the path of an element would repeat its value.
func elements(description string, check func(string) error) validator.Set {
	return setRule{textRule{description: description, check: check}}
}

type setRule struct{ textRule }

// ValidateSet reports what the check says of the known elements.
func (r setRule) ValidateSet(_ context.Context, req validator.SetRequest, resp *validator.SetResponse) {
	for _, element := range req.ConfigValue.Elements() {
		value, isText := element.(types.String)
		switch {
		case !isText || value.IsUnknown():
		case value.IsNull():
			resp.Diagnostics.AddAttributeError(req.Path, "Invalid "+lastStep(req.Path), "An element is null. Leave it out.")
		default:
			if err := r.check(value.ValueString()); err != nil {
				resp.Diagnostics.AddAttributeError(req.Path, "Invalid "+lastStep(req.Path), sentence(err.Error()))
			}
		}
	}
}

// entries makes a validator of a check of each key of a map with its value. Of
// a value that is not known yet the key alone is checked.
func entries(description string, check func(key, value string) error) validator.Map {
	return mapRule{description: description, check: check}
}

type mapRule struct {
	description string
	check       func(key, value string) error
}

// Description says what the rule accepts.
func (r mapRule) Description(context.Context) string { return r.description }

// MarkdownDescription says what the rule accepts.
func (r mapRule) MarkdownDescription(context.Context) string { return r.description }

// ValidateMap reports the check's errors at the argument.
func (r mapRule) ValidateMap(_ context.Context, req validator.MapRequest, resp *validator.MapResponse) {
	all := req.ConfigValue.Elements()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		value, isText := all[key].(types.String)
		if isText && value.IsNull() {
			resp.Diagnostics.AddAttributeError(req.Path, "Invalid "+lastStep(req.Path), fmt.Sprintf("%q is null. Leave it out.", key))
			continue
		}
		if err := r.check(key, value.ValueString()); err != nil {
			resp.Diagnostics.AddAttributeError(req.Path, "Invalid "+lastStep(req.Path), sentence(err.Error()))
		}
	}
}

// oneSpelling refuses two keys that are one to PostgreSQL.
type oneSpelling struct{}

// Description says what the rule accepts.
func (oneSpelling) Description(context.Context) string { return "each setting once, whatever its case" }

// MarkdownDescription says what the rule accepts.
func (r oneSpelling) MarkdownDescription(ctx context.Context) string { return r.Description(ctx) }

// ValidateMap reports a setting that is written twice.
func (oneSpelling) ValidateMap(_ context.Context, req validator.MapRequest, resp *validator.MapResponse) {
	seen := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(req.ConfigValue.Elements())) {
		if other, twice := seen[strings.ToLower(key)]; twice {
			resp.Diagnostics.AddAttributeError(req.Path, "Invalid "+lastStep(req.Path), fmt.Sprintf("%q and %q are one setting. Write it once.", other, key))
		}
		seen[strings.ToLower(key)] = key
	}
}

// someSource refuses a package source that says nothing.
type someSource struct{}

// Description says what the rule accepts.
func (someSource) Description(context.Context) string { return "apt_proxy, pgdg_mirror or both" }

// MarkdownDescription says what the rule accepts.
func (r someSource) MarkdownDescription(ctx context.Context) string { return r.Description(ctx) }

// ValidateObject reports an object without content.
func (someSource) ValidateObject(_ context.Context, req validator.ObjectRequest, resp *validator.ObjectResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	for _, part := range req.ConfigValue.Attributes() {
		if !part.IsNull() {
			return
		}
	}
	resp.Diagnostics.AddAttributeError(req.Path, "Invalid package_source", "It says nothing. Write apt_proxy or pgdg_mirror, or leave package_source out.")
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
