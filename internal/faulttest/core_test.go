package faulttest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/wso2/terraform-provider-dbaas/internal/provider"
)

// object is what Terraform's state holds of one resource. A nil object is none.
type object struct {
	State    []byte // msgpack
	Private  []byte
	Identity []byte
	Tainted  bool
}

// verdicts are what a run said.
type verdicts struct{ Errors, Warnings []string }

func (v *verdicts) add(diags []*tfprotov6.Diagnostic) {
	for _, d := range diags {
		text := d.Summary + ": " + d.Detail
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			v.Errors = append(v.Errors, text)
		} else {
			v.Warnings = append(v.Warnings, text)
		}
	}
}

func (v *verdicts) failed() bool { return len(v.Errors) > 0 }

func (v *verdicts) text() string { return strings.Join(v.Errors, "\n") }

func (v *verdicts) all() string {
	return strings.Join(slices.Concat(v.Errors, v.Warnings), "\n")
}

// core does what Terraform's core does with a provider: it refreshes, plans
// and applies, and keeps between the calls what the protocol wants kept.
type core struct{ kubeconfig string }

// walk is one configured provider, as Terraform has one for a plan and another
// for the apply.
type walk struct {
	server   tfprotov6.ProviderServer
	schema   *tfprotov6.Schema
	verdicts *verdicts
}

const typeName = "dbaas_instance"

func (c core) walk(ctx context.Context, v *verdicts) (*walk, error) {
	server, err := providerserver.NewProtocol6WithError(provider.NewWithEnvironment("test", func(string) string { return "" })())()
	if err != nil {
		return nil, err
	}
	schemas, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return nil, err
	}
	config, err := pack(schemas.Provider, args{"config_path": c.kubeconfig})
	if err != nil {
		return nil, err
	}
	configured, err := server.ConfigureProvider(ctx, &tfprotov6.ConfigureProviderRequest{Config: config, TerraformVersion: "1.14.0"})
	if err != nil {
		return nil, err
	}
	v.add(configured.Diagnostics)
	return &walk{server: server, schema: schemas.ResourceSchemas[typeName], verdicts: v}, nil
}

// refresh returns the object as it stands; nil when it is gone. When the
// provider says an error, the object is what it was.
func (w *walk) refresh(ctx context.Context, o *object) (*object, error) {
	if o == nil {
		return nil, nil
	}
	resp, err := w.server.ReadResource(ctx, &tfprotov6.ReadResourceRequest{
		TypeName: typeName, CurrentState: &tfprotov6.DynamicValue{MsgPack: o.State}, Private: o.Private, CurrentIdentity: identityOf(o.Identity),
	})
	if err != nil {
		return nil, err
	}
	w.verdicts.add(resp.Diagnostics)
	if w.verdicts.failed() {
		return o, nil
	}
	return w.keep(resp.NewState, resp.Private, resp.NewIdentity, o.Tainted)
}

// importObject is `terraform import`, with the read that belongs to it.
func (w *walk) importObject(ctx context.Context, id string) (*object, error) {
	resp, err := w.server.ImportResourceState(ctx, &tfprotov6.ImportResourceStateRequest{TypeName: typeName, ID: id})
	if err != nil {
		return nil, err
	}
	w.verdicts.add(resp.Diagnostics)
	if w.verdicts.failed() {
		return nil, nil
	}
	found := resp.ImportedResources[0]
	o, err := w.keep(found.State, found.Private, found.Identity, false)
	if err != nil {
		return nil, err
	}
	read, err := w.refresh(ctx, o)
	if w.verdicts.failed() {
		return nil, err
	}
	return read, err
}

// plan is one planned change.
type plan struct {
	state    *tfprotov6.DynamicValue
	config   *tfprotov6.DynamicValue
	private  []byte
	identity *tfprotov6.ResourceIdentityData
	prior    *object
}

// plan plans a change to a configuration; nil plans the end.
func (w *walk) plan(ctx context.Context, prior *object, config args) (*plan, error) {
	packed, err := pack(w.schema, config)
	if err != nil {
		return nil, err
	}
	proposed, err := w.proposed(prior, config)
	if err != nil {
		return nil, err
	}
	req := &tfprotov6.PlanResourceChangeRequest{TypeName: typeName, PriorState: w.stateOf(prior), ProposedNewState: proposed, Config: packed}
	if prior != nil {
		req.PriorPrivate, req.PriorIdentity = prior.Private, identityOf(prior.Identity)
	}
	resp, err := w.server.PlanResourceChange(ctx, req)
	if err != nil {
		return nil, err
	}
	w.verdicts.add(resp.Diagnostics)
	if len(resp.RequiresReplace) > 0 {
		return nil, fmt.Errorf("a replace is planned: %v", resp.RequiresReplace)
	}
	return &plan{state: resp.PlannedState, config: packed, private: resp.PlannedPrivate, identity: resp.PlannedIdentity, prior: prior}, nil
}

// proposed is what core proposes: the configuration, and for what it leaves to
// the provider the standing value.
func (w *walk) proposed(prior *object, config args) (*tfprotov6.DynamicValue, error) {
	if config == nil || prior == nil {
		return pack(w.schema, config)
	}
	typ := w.schema.ValueType()
	value, err := valueOf(typ, config)
	if err != nil {
		return nil, err
	}
	var written, stands map[string]tftypes.Value
	standing, err := w.unpack(&tfprotov6.DynamicValue{MsgPack: prior.State})
	if err != nil {
		return nil, err
	}
	if err := value.As(&written); err != nil {
		return nil, err
	}
	if err := standing.As(&stands); err != nil {
		return nil, err
	}
	for _, attribute := range w.schema.Block.Attributes {
		if attribute.Computed && written[attribute.Name].IsNull() {
			written[attribute.Name] = stands[attribute.Name]
		}
	}
	result, err := tfprotov6.NewDynamicValue(typ, tftypes.NewValue(typ, written))
	return &result, err
}

// empty says whether nothing is to be done.
func (w *walk) empty(p *plan) (bool, error) {
	before, err := w.unpack(w.stateOf(p.prior))
	if err != nil {
		return false, err
	}
	after, err := w.unpack(p.state)
	return err == nil && before.Equal(after), err
}

// apply carries a plan out. As in core, a provider that fails keeps or gives
// up the object by what it returns, and a failed create is tainted.
func (w *walk) apply(ctx context.Context, p *plan) (*object, error) {
	resp, err := w.server.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: typeName, PriorState: w.stateOf(p.prior), PlannedState: p.state, Config: p.config,
		PlannedPrivate: p.private, PlannedIdentity: p.identity,
	})
	if err != nil {
		return nil, err
	}
	w.verdicts.add(resp.Diagnostics)
	failed := w.verdicts.failed()
	if !failed {
		if err := w.consistent(p.state, resp.NewState); err != nil {
			return nil, err
		}
	}
	return w.keep(resp.NewState, resp.Private, resp.NewIdentity, failed && (p.prior == nil || p.prior.Tainted))
}

// consistent is core's check of what a provider returns: what was planned, and
// nothing that is still unknown.
func (w *walk) consistent(planned, result *tfprotov6.DynamicValue) error {
	before, err := w.unpack(planned)
	if err != nil || before.IsNull() {
		return err
	}
	after, err := w.unpack(result)
	if err != nil {
		return err
	}
	var promised, kept map[string]tftypes.Value
	if err := before.As(&promised); err != nil {
		return err
	}
	if err := after.As(&kept); err != nil {
		return err
	}
	for name, value := range promised {
		if value.IsFullyKnown() && !value.Equal(kept[name]) {
			return fmt.Errorf("inconsistent result after apply: %s", name)
		}
		if !kept[name].IsFullyKnown() {
			return fmt.Errorf("unknown after apply: %s", name)
		}
	}
	return nil
}

func (w *walk) stateOf(o *object) *tfprotov6.DynamicValue {
	if o != nil {
		return &tfprotov6.DynamicValue{MsgPack: o.State}
	}
	none, err := pack(w.schema, nil)
	if err != nil {
		panic(err) // null packs always
	}
	return none
}

func (w *walk) unpack(v *tfprotov6.DynamicValue) (tftypes.Value, error) {
	return v.Unmarshal(w.schema.ValueType())
}

func (w *walk) keep(state *tfprotov6.DynamicValue, private []byte, identity *tfprotov6.ResourceIdentityData, tainted bool) (*object, error) {
	if state == nil {
		return nil, nil
	}
	value, err := w.unpack(state)
	if err != nil || value.IsNull() {
		return nil, err
	}
	o := &object{State: state.MsgPack, Private: private, Tainted: tainted}
	if identity != nil && identity.IdentityData != nil {
		o.Identity = identity.IdentityData.MsgPack
	}
	return o, nil
}

func identityOf(packed []byte) *tfprotov6.ResourceIdentityData {
	if packed == nil {
		return nil
	}
	return &tfprotov6.ResourceIdentityData{IdentityData: &tfprotov6.DynamicValue{MsgPack: packed}}
}

// String shows an object for a message, without its secrets.
func (o *object) String() string {
	if o == nil {
		return "no state"
	}
	b, err := json.Marshal(map[string]any{"bytes": len(o.State), "tainted": o.Tainted})
	if err != nil {
		panic(err) // these values always marshal
	}
	return string(b)
}

// differs names an attribute that two objects have otherwise.
func (w *walk) differs(a, b *object) (string, error) {
	var members [2]map[string]tftypes.Value
	for i, o := range []*object{a, b} {
		value, err := w.unpack(w.stateOf(o))
		if err != nil {
			return "", err
		}
		if value.IsNull() {
			return "one is null", nil
		}
		if err := value.As(&members[i]); err != nil {
			return "", err
		}
	}
	var names []string
	for name, value := range members[0] {
		if !value.Equal(members[1][name]) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", "), nil
}
