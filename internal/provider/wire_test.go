package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// wire speaks to the provider as Terraform does.
type wire struct {
	t      *testing.T
	server tfprotov6.ProviderServer
	schema *tfprotov6.GetProviderSchemaResponse
}

// unknown stands for a value that is known only after apply.
type unknown struct{}

func newWire(t *testing.T, environment map[string]string) *wire {
	t.Helper()
	provider := NewWithEnvironment("test", func(name string) string { return environment[name] })()
	server, err := providerserver.NewProtocol6WithError(provider)()
	if err != nil {
		t.Fatal(err)
	}
	schema, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	noErrors(t, schema.Diagnostics)
	return &wire{t: t, server: server, schema: schema}
}

// configure gives the provider block and returns what is said about it.
func (w *wire) configure(block map[string]any) []*tfprotov6.Diagnostic {
	w.t.Helper()
	config := w.pack(w.schema.Provider, block)
	validated, err := w.server.ValidateProviderConfig(w.t.Context(), &tfprotov6.ValidateProviderConfigRequest{Config: config})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(validated.Diagnostics) > 0 {
		return validated.Diagnostics
	}
	configured, err := w.server.ConfigureProvider(w.t.Context(), &tfprotov6.ConfigureProviderRequest{Config: config, TerraformVersion: "1.11.4"})
	if err != nil {
		w.t.Fatal(err)
	}
	return configured.Diagnostics
}

// validate returns what is said about an instance's configuration.
func (w *wire) validate(block map[string]any) []*tfprotov6.Diagnostic {
	w.t.Helper()
	resp, err := w.server.ValidateResourceConfig(w.t.Context(), &tfprotov6.ValidateResourceConfigRequest{
		TypeName: "dbaas_instance", Config: w.pack(w.instance(), block),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.Diagnostics
}

// plan plans an instance. As Terraform does, it proposes for what is computed
// and not written what the state has. Nil is no state, or no configuration.
func (w *wire) plan(state, config map[string]any) *tfprotov6.PlanResourceChangeResponse {
	w.t.Helper()
	proposed := config
	if config != nil {
		proposed = maps.Clone(config)
		for _, attribute := range w.instance().Block.Attributes {
			if attribute.Computed && proposed[attribute.Name] == nil {
				proposed[attribute.Name] = state[attribute.Name]
			}
		}
	}
	resp, err := w.server.PlanResourceChange(w.t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: "dbaas_instance", PriorState: w.pack(w.instance(), state),
		ProposedNewState: w.pack(w.instance(), proposed), Config: w.pack(w.instance(), config),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return resp
}

func (w *wire) instance() *tfprotov6.Schema { return w.schema.ResourceSchemas["dbaas_instance"] }

func (w *wire) pack(schema *tfprotov6.Schema, block map[string]any) *tfprotov6.DynamicValue {
	w.t.Helper()
	typ := schema.ValueType()
	value := tftypes.NewValue(typ, nil)
	if block != nil {
		value = valueOf(w.t, typ, block)
	}
	packed, err := tfprotov6.NewDynamicValue(typ, value)
	if err != nil {
		w.t.Fatal(err)
	}
	return &packed
}

// unpack returns a planned instance as plain values.
func (w *wire) unpack(packed *tfprotov6.DynamicValue) map[string]any {
	w.t.Helper()
	value, err := packed.Unmarshal(w.instance().ValueType())
	if err != nil {
		w.t.Fatal(err)
	}
	plain, _ := plainOf(w.t, value).(map[string]any)
	return plain
}

// valueOf makes a value of plain Go ones; what an object leaves out is null.
func valueOf(t *testing.T, typ tftypes.Type, plain any) tftypes.Value {
	t.Helper()
	switch plain := plain.(type) {
	case nil:
		return tftypes.NewValue(typ, nil)
	case unknown:
		return tftypes.NewValue(typ, tftypes.UnknownValue)
	case int:
		return tftypes.NewValue(typ, big.NewFloat(float64(plain)))
	case []any:
		elements := make([]tftypes.Value, len(plain))
		for i, element := range plain {
			switch typ := typ.(type) {
			case tftypes.Set:
				elements[i] = valueOf(t, typ.ElementType, element)
			default:
				elements[i] = valueOf(t, typ.(tftypes.List).ElementType, element)
			}
		}
		return tftypes.NewValue(typ, elements)
	case map[string]any:
		members := map[string]tftypes.Value{}
		if object, ok := typ.(tftypes.Object); ok {
			for name, member := range object.AttributeTypes {
				members[name] = valueOf(t, member, plain[name])
			}
			for name := range plain {
				if _, ok := object.AttributeTypes[name]; !ok {
					t.Fatalf("no attribute %s", name)
				}
			}
			return tftypes.NewValue(typ, members)
		}
		for name, member := range plain {
			members[name] = valueOf(t, typ.(tftypes.Map).ElementType, member)
		}
		return tftypes.NewValue(typ, members)
	default:
		return tftypes.NewValue(typ, plain)
	}
}

// plainOf is valueOf the other way; null members are left out.
func plainOf(t *testing.T, value tftypes.Value) any {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	switch typ := value.Type(); {
	case !value.IsKnown():
		return unknown{}
	case value.IsNull():
		return nil
	case typ.Is(tftypes.String):
		var s string
		must(value.As(&s))
		return s
	case typ.Is(tftypes.Bool):
		var b bool
		must(value.As(&b))
		return b
	case typ.Is(tftypes.Number):
		n := new(big.Float)
		must(value.As(&n))
		i, _ := n.Int64()
		return int(i)
	case typ.Is(tftypes.List{}), typ.Is(tftypes.Set{}):
		var elements []tftypes.Value
		must(value.As(&elements))
		plain := make([]any, len(elements))
		for i, element := range elements {
			plain[i] = plainOf(t, element)
		}
		if typ.Is(tftypes.Set{}) {
			slices.SortFunc(plain, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		return plain
	default:
		members := map[string]tftypes.Value{}
		must(value.As(&members))
		plain := map[string]any{}
		for name, member := range members {
			if p := plainOf(t, member); p != nil {
				plain[name] = p
			}
		}
		return plain
	}
}

func noErrors(t *testing.T, diags []*tfprotov6.Diagnostic) {
	t.Helper()
	for _, d := range diags {
		t.Errorf("%s: %s\n%s", d.Severity, d.Summary, d.Detail)
	}
}

// told looks for the one error that is expected, at its attribute.
func told(t *testing.T, diags []*tfprotov6.Diagnostic, attribute, text string) {
	t.Helper()
	var all []string
	for _, d := range diags {
		whole := d.Attribute.String() + ": " + d.Summary + ": " + d.Detail
		if strings.HasPrefix(whole, `AttributeName("`+attribute+`")`) && strings.Contains(whole, text) {
			return
		}
		all = append(all, whole)
	}
	slices.Sort(all)
	t.Errorf("no error at %q says %q; told was:\n%s", attribute, text, strings.Join(all, "\n"))
}

// with is a copy of a block with some values changed.
func with(block map[string]any, changes map[string]any) map[string]any {
	changed := maps.Clone(block)
	maps.Copy(changed, changes)
	return changed
}

// minimal is an instance with its required arguments only.
func minimal() map[string]any {
	return map[string]any{"name": "orders", "instance_class": "db.t3.micro", "allocated_storage": 10, "network_ref": "default/vm-net-100"}
}

// privateOf reads the provider's part of private state.
func privateOf(t *testing.T, private []byte) map[string]string {
	t.Helper()
	var packed map[string][]byte
	if err := json.Unmarshal(private, &packed); err != nil {
		t.Fatal(err)
	}
	result := map[string]string{}
	for key, value := range packed {
		result[key] = string(value)
	}
	return result
}
