// Command schemafile prints the provider's schemas in the format of
// `terraform providers schema -json`, for the documentation's generator.
// Terraform itself leaves out the kinds that its own version does not know.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/wso2/terraform-provider-dbaas/internal/provider"
)

// address is where the generator looks up a provider by its short name.
const address = "registry.terraform.io/hashicorp/dbaas"

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "schemafile:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	server, err := providerserver.NewProtocol6WithError(provider.New("schema")())()
	if err != nil {
		return fmt.Errorf("start provider: %w", err)
	}
	schemas, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return fmt.Errorf("get schemas: %w", err)
	}
	identities, err := server.GetResourceIdentitySchemas(ctx, &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		return fmt.Errorf("get identities: %w", err)
	}
	for _, d := range append(schemas.Diagnostics, identities.Diagnostics...) {
		return fmt.Errorf("get schemas: %s: %s", d.Summary, d.Detail)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(map[string]any{
		"format_version":   "1.0",
		"provider_schemas": map[string]any{address: document(schemas, identities)},
	})
}

// object is a JSON object.
type object = map[string]any

func document(s *tfprotov6.GetProviderSchemaResponse, i *tfprotov6.GetResourceIdentitySchemasResponse) object {
	return object{
		"provider":                   schema(s.Provider),
		"resource_schemas":           each(s.ResourceSchemas, schema),
		"data_source_schemas":        each(s.DataSourceSchemas, schema),
		"ephemeral_resource_schemas": each(s.EphemeralResourceSchemas, schema),
		"list_resource_schemas":      each(s.ListResourceSchemas, schema),
		"action_schemas":             each(s.ActionSchemas, func(a *tfprotov6.ActionSchema) object { return schema(a.Schema) }),
		"functions":                  each(s.Functions, function),
		"resource_identity_schemas":  each(i.IdentitySchemas, identity),
	}
}

func each[T any](all map[string]T, convert func(T) object) object {
	result := object{}
	for name, one := range all {
		result[name] = convert(one)
	}
	return result
}

func schema(s *tfprotov6.Schema) object {
	return object{"version": s.Version, "block": object{
		"attributes":       attributes(s.Block.Attributes),
		"description":      s.Block.Description,
		"description_kind": kind(s.Block.DescriptionKind),
	}}
}

func attributes(all []*tfprotov6.SchemaAttribute) object {
	result := object{}
	for _, a := range all {
		converted := object{
			"description": a.Description, "description_kind": kind(a.DescriptionKind), "deprecated": a.Deprecated,
			"required": a.Required, "optional": a.Optional, "computed": a.Computed, "sensitive": a.Sensitive, "write_only": a.WriteOnly,
		}
		if nested := a.NestedType; nested != nil {
			converted["nested_type"] = object{"attributes": attributes(nested.Attributes), "nesting_mode": nesting(nested.Nesting)}
		} else {
			converted["type"] = a.Type
		}
		result[a.Name] = converted
	}
	return result
}

func identity(s *tfprotov6.ResourceIdentitySchema) object {
	all := object{}
	for _, a := range s.IdentityAttributes {
		all[a.Name] = object{
			"type": a.Type, "description": a.Description,
			"required_for_import": a.RequiredForImport, "optional_for_import": a.OptionalForImport,
		}
	}
	return object{"version": s.Version, "attributes": all}
}

func function(f *tfprotov6.Function) object {
	var parameters []object
	for _, p := range f.Parameters {
		parameters = append(parameters, parameter(p))
	}
	result := object{
		"description": f.Description, "summary": f.Summary, "return_type": f.Return.Type, "parameters": parameters,
	}
	if f.VariadicParameter != nil {
		result["variadic_parameter"] = parameter(f.VariadicParameter)
	}
	return result
}

func parameter(p *tfprotov6.FunctionParameter) object {
	return object{"name": p.Name, "description": p.Description, "type": p.Type, "is_nullable": p.AllowNullValue}
}

func kind(k tfprotov6.StringKind) string {
	if k == tfprotov6.StringKindMarkdown {
		return "markdown"
	}
	return "plain"
}

func nesting(m tfprotov6.SchemaObjectNestingMode) string {
	switch m {
	case tfprotov6.SchemaObjectNestingModeSingle:
		return "single"
	case tfprotov6.SchemaObjectNestingModeList:
		return "list"
	case tfprotov6.SchemaObjectNestingModeSet:
		return "set"
	case tfprotov6.SchemaObjectNestingModeMap:
		return "map"
	}
	return ""
}
