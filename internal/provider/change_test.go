package provider

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a plan does when one argument alone changes.
const (
	inPlace     = "update in place"
	withRestart = "update in place that may boot the machine"
	planError   = "error that names it"
	replaces    = "guarded replace"
	nothing     = "nothing"
)

// changes are the documented consequences of every argument's change. A new
// argument without a row fails the test below.
func changes() map[string]struct {
	value any
	want  string
} {
	return map[string]struct {
		value any
		want  string
	}{
		"name":                        {"other", replaces},
		"namespace":                   {"other", replaces},
		"instance_class":              {"db.t3.small", withRestart},
		"allocated_storage":           {20, withRestart},
		"network_ref":                 {"default/other", planError},
		"engine_version":              {"17", planError},
		"db_name":                     {"other", planError},
		"master_username":             {"other", planError},
		"port":                        {5433, planError},
		"os_image":                    {"other", planError},
		"storage_type":                {"other", planError},
		"static_network":              {map[string]any{"address": "10.50.0.42/24", "gateway": "10.50.0.1", "nameservers": []any{"10.50.0.2"}}, planError},
		"running":                     {false, withRestart},
		"manage_master_user_password": {true, inPlace},
		"master_password_wo":          {"another password", inPlace}, // from a generated one: a switch of the mode
		"master_password_wo_version":  {2, withRestart},
		"password_rotation":           {2, withRestart},
		"deletion_protection":         {true, inPlace},
		"deletion_policy":             {"retain", inPlace},
		"parameters":                  {map[string]any{"work_mem": "8MB"}, withRestart},
		"extensions":                  {[]any{"pgcrypto"}, withRestart},
		"allowed_cidrs":               {[]any{"10.0.0.0/8"}, withRestart},
		"dns_names":                   {[]any{"orders.example.com"}, withRestart},
		"ssh_public_keys":             {[]any{sshKey}, withRestart},
		"package_source":              {map[string]any{"apt_proxy": "http://proxy:3142"}, inPlace},
		"monitoring":                  {map[string]any{}, withRestart},
		"tags":                        {map[string]any{"team": "payments"}, inPlace},
		"timeouts":                    {map[string]any{"create": "1h"}, inPlace},
	}
}

func TestEveryArgumentChangesAsDocumented(t *testing.T) {
	table := changes()
	for _, attribute := range newWire(t, nil).instance().Block.Attributes {
		if !attribute.Optional && !attribute.Required {
			continue
		}
		t.Run(attribute.Name, func(t *testing.T) {
			row, documented := table[attribute.Name]
			if !documented {
				t.Fatal("nothing says what its change does")
			}
			config := with(minimal(), map[string]any{attribute.Name: row.value})
			if attribute.Name == "master_password_wo_version" {
				config["master_password_wo"] = "supplied password"
			}
			if got := consequence(t, attribute.Name, standing(), config); got != row.want {
				t.Errorf("its change is: %s, want: %s", got, row.want)
			}
		})
	}
}

func TestWriteOnlyPasswordAloneChangesNothing(t *testing.T) {
	supplied := with(standing(), map[string]any{"master_password": nil, "master_password_wo_version": 1})
	for story, test := range map[string]struct {
		version any
		want    string
	}{"the same version": {1, nothing}, "another version": {2, withRestart}, "no version any more": {nil, withRestart}} {
		config := with(minimal(), map[string]any{"master_password_wo": "another password", "master_password_wo_version": test.version})
		if got := consequence(t, "master_password_wo_version", supplied, config); got != test.want {
			t.Errorf("%s: %s, want: %s", story, got, test.want)
		}
	}
}

func TestNoPasswordIsSetWhileTheInstanceStandsStill(t *testing.T) {
	still := map[string]any{"status": "stopped", "running": false}
	for attribute, config := range map[string]map[string]any{
		"password_rotation":          {"password_rotation": 2, "running": false},
		"master_password_wo_version": {"master_password_wo": "another password", "master_password_wo_version": 2, "running": false},
	} {
		told(t, planner(t).plan(with(standing(), still), with(minimal(), config)).Diagnostics, attribute, "boots takes a new password")
		told(t, planner(t).plan(standing(), with(minimal(), config)).Diagnostics, attribute, "boots takes a new password")
		config["running"] = true
		noErrors(t, planner(t).plan(with(standing(), still), with(minimal(), config)).Diagnostics)
	}
}

// consequence is what the plan of a configuration does to a state.
func consequence(t *testing.T, argument string, state, config map[string]any) string {
	t.Helper()
	w := planner(t)
	resp := w.plan(state, config)
	for _, d := range resp.Diagnostics {
		if strings.HasPrefix(d.Attribute.String(), `AttributeName("`+argument+`")`) {
			return planError
		}
		t.Errorf("%s: %s", d.Summary, d.Detail)
	}
	if len(resp.RequiresReplace) > 0 {
		return replaces
	}
	before, after := w.unpack(w.pack(w.instance(), state)), w.unpack(resp.PlannedState)
	if cmp.Equal(before, after) {
		return nothing
	}
	boots := []string{"status", "status_reason", "address", "endpoint", "connection_uri", "jdbc_url", "engine_version_actual"}
	forgotten := 0
	for name, value := range after {
		if value == any(unknown{}) && slices.Contains(boots, name) {
			forgotten++
		}
	}
	switch forgotten {
	case len(boots):
		return withRestart
	case 0:
		return inPlace
	default:
		t.Errorf("of what a boot may change only a part is unknown: %v", after)
		return ""
	}
}
