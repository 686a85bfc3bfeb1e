package provider

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func TestProviderBlockIsChecked(t *testing.T) {
	for story, test := range map[string]struct {
		block map[string]any
		text  string
	}{
		"nothing configured at all":  {map[string]any{}, "KUBE_CONFIG_PATH"},
		"two kinds of kubeconfig":    {map[string]any{"config_path": "a", "kubeconfig": "b"}, "config_path"},
		"key without certificate":    {map[string]any{"host": "https://127.0.0.1:1", "client_key": "k"}, "client_certificate"},
		"kubeconfig that is missing": {map[string]any{"config_path": "does/not/exist"}, "does/not/exist"},
		"namespace with a slash":     {map[string]any{"namespace": "a/b"}, "is not a namespace"},
		"class redefined": {
			map[string]any{"host": "https://127.0.0.1:1", "instance_classes": map[string]any{"db.t3.micro": map[string]any{"cpu": 8, "memory_mib": 1024, "max_connections": 50}}},
			"can be added, not redefined",
		},
	} {
		t.Run(story, func(t *testing.T) {
			var said []string
			for _, d := range newWire(t, nil).configure(test.block) {
				said = append(said, d.Summary+": "+d.Detail)
			}
			if !strings.Contains(strings.Join(said, "\n"), test.text) {
				t.Errorf("nothing says %q: %q", test.text, said)
			}
		})
	}
}

func TestProviderIsConfiguredWithoutDialling(t *testing.T) {
	for story, block := range map[string]map[string]any{
		"a cluster that nobody answers for": {"host": "https://127.0.0.1:1", "token": "t", "namespace": "a"},
		"a host that is not known yet":      {"host": unknown{}, "instance_classes": unknown{}},
		"a class of which a part is not known": {
			"host": "https://127.0.0.1:1", "instance_classes": map[string]any{"x": map[string]any{"cpu": unknown{}, "memory_mib": 1024, "max_connections": 50}},
		},
	} {
		t.Run(story, func(t *testing.T) { noErrors(t, newWire(t, nil).configure(block)) })
	}
}

func TestNothingFailsWhileTheProviderIsUnknown(t *testing.T) {
	w := newWire(t, nil)
	noErrors(t, w.configure(map[string]any{"host": unknown{}, "instance_classes": unknown{}}))
	noErrors(t, w.plan(nil, minimal()).Diagnostics)
	noErrors(t, w.plan(standing(), minimal()).Diagnostics)
	noErrors(t, w.plan(standing(), nil).Diagnostics)

	state := w.pack(w.instance(), standing())
	read, err := w.server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{TypeName: "dbaas_instance", CurrentState: state})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range read.Diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			t.Errorf("%s: %s", d.Summary, d.Detail)
		}
	}
	if w.unpack(read.NewState)["id"] != "tenant-acme/orders" {
		t.Error("the read lost the instance")
	}
}

func TestChangedTimeoutsSendNothing(t *testing.T) {
	w := newWire(t, nil)
	noErrors(t, w.configure(map[string]any{"host": "https://127.0.0.1:1"})) // nobody listens there
	config := with(minimal(), map[string]any{"timeouts": map[string]any{"create": "1h"}})
	planned := w.plan(standing(), config)
	noErrors(t, planned.Diagnostics)
	// As Terraform 1.11, which keeps no identity across requests.
	applied, err := w.server.ApplyResourceChange(t.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: "dbaas_instance", PriorState: w.pack(w.instance(), standing()), PlannedState: planned.PlannedState,
		Config: w.pack(w.instance(), config), PlannedPrivate: planned.PlannedPrivate,
	})
	if err != nil {
		t.Fatal(err)
	}
	noErrors(t, applied.Diagnostics)
	if diff := cmp.Diff(w.unpack(planned.PlannedState), w.unpack(applied.NewState)); diff != "" {
		t.Error(diff)
	}
}

func TestImportTakesIDAndIdentity(t *testing.T) {
	w := planner(t)
	identity, err := w.server.GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		t.Fatal(err)
	}
	typ := identity.IdentitySchemas["dbaas_instance"].ValueType()
	place, err := tfprotov6.NewDynamicValue(typ, valueOf(t, typ, map[string]any{"namespace": "tenant-acme", "name": "orders"}))
	if err != nil {
		t.Fatal(err)
	}
	for story, request := range map[string]*tfprotov6.ImportResourceStateRequest{
		"id":       {TypeName: "dbaas_instance", ID: "tenant-acme/orders"},
		"identity": {TypeName: "dbaas_instance", Identity: &tfprotov6.ResourceIdentityData{IdentityData: &place}},
	} {
		t.Run(story, func(t *testing.T) {
			resp, err := w.server.ImportResourceState(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			noErrors(t, resp.Diagnostics)
			got := w.unpack(resp.ImportedResources[0].State)
			if got["namespace"] != "tenant-acme" || got["name"] != "orders" {
				t.Errorf("imported %v", got)
			}
			value, err := resp.ImportedResources[0].Identity.IdentityData.Unmarshal(typ)
			if err != nil {
				t.Fatal(err)
			}
			if !value.Equal(tftypes.NewValue(typ, map[string]tftypes.Value{
				"namespace": tftypes.NewValue(tftypes.String, "tenant-acme"), "name": tftypes.NewValue(tftypes.String, "orders"),
			})) {
				t.Errorf("identity %s", value)
			}
		})
	}
	for _, id := range []string{"orders", "tenant-acme/", "a/b/c", "/orders"} {
		resp, err := w.server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: "dbaas_instance", ID: id})
		if err != nil {
			t.Fatal(err)
		}
		if len(resp.Diagnostics) == 0 {
			t.Errorf("%q is taken as an id", id)
		}
	}
}

func TestEveryArgumentIsDescribed(t *testing.T) {
	w := newWire(t, nil)
	for name, schema := range map[string]*tfprotov6.Schema{"provider": w.schema.Provider, "dbaas_instance": w.instance()} {
		for _, attribute := range schema.Block.Attributes {
			described(t, name, attribute)
		}
	}
}

func described(t *testing.T, place string, attribute *tfprotov6.SchemaAttribute) {
	t.Helper()
	place += "." + attribute.Name
	// The timeouts module describes the parts, not the whole.
	if attribute.Description == "" && attribute.Name != "timeouts" {
		t.Errorf("%s has no description", place)
	}
	if attribute.NestedType != nil {
		for _, nested := range attribute.NestedType.Attributes {
			described(t, place, nested)
		}
	}
}
