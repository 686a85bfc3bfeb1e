package provider

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// planner is a provider whose cluster is not known yet: it plans by values
// alone. Its catalogue has one more class.
func planner(t *testing.T) *wire {
	t.Helper()
	w := newWire(t, nil)
	noErrors(t, w.configure(map[string]any{
		"host":             unknown{},
		"instance_classes": map[string]any{"lab.tiny": map[string]any{"cpu": 1, "memory_mib": 600, "max_connections": 20}},
	}))
	return w
}

// standing is the state of an instance that serves.
func standing() map[string]any {
	return map[string]any{
		"name": "orders", "namespace": "tenant-acme", "instance_class": "db.t3.micro", "allocated_storage": 10,
		"network_ref": "default/vm-net-100", "engine_version": "16", "db_name": "orders", "master_username": "dbadmin", "port": 5432,
		"os_image": "debian", "storage_type": "longhorn", "manage_master_user_password": false, "deletion_protection": false,
		"running": true, "deletion_policy": "delete", "tags": map[string]any{}, "tags_all": map[string]any{},
		"parameters": map[string]any{}, "extensions": []any{}, "dns_names": []any{}, "ssh_public_keys": []any{}, "allowed_cidrs": []any{"0.0.0.0/0", "::/0"},
		"id": "tenant-acme/orders", "instance_id": "11111111-1111-1111-1111-111111111111", "owner_id": "22222222-2222-2222-2222-222222222222",
		"status": "available", "address": "10.50.0.42", "endpoint": "10.50.0.42:5432",
		"connection_uri": "postgresql://dbadmin@10.50.0.42:5432/orders?sslmode=verify-full",
		"jdbc_url":       "jdbc:postgresql://10.50.0.42:5432/orders?ssl=true&sslmode=verify-full",
		"ca_cert_pem":    "PEM", "ca_valid_until": "2036-01-01T00:00:00Z", "master_password": "generated",
		"master_user_secret": map[string]any{"name": "pg-orders-credentials", "namespace": "tenant-acme", "status": "active"},
		"vcpu":               1, "memory_mib": 1024, "max_connections": 50, "engine_version_actual": "16",
		"resources": map[string]any{
			"vm_name": "pg-orders", "os_volume_name": "pg-orders-os", "data_volume_name": "pg-orders-data",
			"credentials_secret_name": "pg-orders-credentials", "cloudinit_secret_name": "pg-orders-cloudinit",
		},
	}
}

// monitored is the object monitoring as a plan completes it.
func monitored(changes map[string]any) map[string]any {
	return with(map[string]any{"scrape_interval": "15s", "allowed_cidrs": []any{"0.0.0.0/0", "::/0"}}, changes)
}

// watched is what the state of an instance with monitoring has besides.
func watched() map[string]any {
	names := with(standing()["resources"].(map[string]any), map[string]any{"metrics_service_name": "pg-orders-metrics", "service_monitor_name": "pg-orders-monitor"})
	return map[string]any{"monitoring": monitored(nil), "resources": names}
}

func TestPlannedCreateSettlesDefaults(t *testing.T) {
	for story, test := range map[string]struct{ config, want map[string]any }{
		"nothing but what is required": {
			config: minimal(),
			want: map[string]any{
				"engine_version": "16", "db_name": "orders", "master_username": "dbadmin", "port": 5432,
				"os_image": "ubuntu-22.04-server-cloudimg-amd64.img", "storage_type": "longhorn", "static_network": nil,
				"manage_master_user_password": false, "deletion_protection": false,
				"vcpu": 1, "memory_mib": 1024, "max_connections": 50,
				"namespace": unknown{}, "id": unknown{}, "status": unknown{}, "address": unknown{}, "master_password": unknown{}, "ca_cert_pem": unknown{},
			},
		},
		"database named after the instance": {
			config: with(minimal(), map[string]any{"name": "orders-prod-1"}),
			want:   map[string]any{"db_name": "orders_prod_1"},
		},
		"instance name begins with a digit": {
			config: with(minimal(), map[string]any{"name": "1st-db"}),
			want:   map[string]any{"db_name": "db_1st_db"},
		},
		"instance is called as PostgreSQL's own database": {
			config: with(minimal(), map[string]any{"name": "postgres"}),
			want:   map[string]any{"db_name": "db_postgres"},
		},
		"name and class known only after apply": {
			config: with(minimal(), map[string]any{"name": unknown{}, "instance_class": unknown{}}),
			want:   map[string]any{"name": unknown{}, "db_name": unknown{}, "vcpu": unknown{}, "memory_mib": unknown{}, "port": 5432},
		},
		"written but unknown is no default": {
			config: with(minimal(), map[string]any{"engine_version": unknown{}, "port": unknown{}, "static_network": unknown{}}),
			want:   map[string]any{"engine_version": unknown{}, "port": unknown{}, "static_network": unknown{}},
		},
		"password in the Secret only": {
			config: with(minimal(), map[string]any{"manage_master_user_password": true}),
			want:   map[string]any{"master_password": nil},
		},
		"monitoring": {
			config: with(minimal(), map[string]any{"namespace": "tenant-acme", "monitoring": map[string]any{"grafana_base_url": "https://grafana.example.com"}}),
			want: map[string]any{
				"monitoring":  monitored(map[string]any{"grafana_base_url": "https://grafana.example.com"}),
				"grafana_url": "https://grafana.example.com/d/dbaas-postgresql?var-namespace=tenant-acme&var-instance=orders", "resources": unknown{},
			},
		},
		"monitoring in a namespace that is not known yet": {
			config: with(minimal(), map[string]any{"monitoring": map[string]any{"grafana_base_url": "https://grafana.example.com"}}),
			want:   map[string]any{"grafana_url": unknown{}},
		},
		"no monitoring": {config: minimal(), want: map[string]any{"monitoring": nil, "grafana_url": nil}},
		"class of the provider block": {
			config: with(minimal(), map[string]any{"instance_class": "lab.tiny"}),
			want:   map[string]any{"vcpu": 1, "memory_mib": 600, "max_connections": 20},
		},
	} {
		t.Run(story, func(t *testing.T) {
			w := planner(t)
			resp := w.plan(nil, test.config)
			noErrors(t, resp.Diagnostics)
			planned := w.unpack(resp.PlannedState)
			for name, want := range test.want {
				if diff := cmp.Diff(want, planned[name]); diff != "" {
					t.Errorf("%s:\n%s", name, diff)
				}
			}
		})
	}
}

func TestUnknownClassIsRefusedWithTheKnownNames(t *testing.T) {
	resp := planner(t).plan(nil, with(minimal(), map[string]any{"instance_class": "db.t3.huge"}))
	told(t, resp.Diagnostics, "instance_class", "db.m5.large")
	told(t, resp.Diagnostics, "instance_class", "lab.tiny")
}

func TestPlannedUpdateChangesOnlyWhatFollows(t *testing.T) {
	unread := map[string]any{"status": unknown{}, "status_reason": unknown{}}
	unreachable := with(unread, map[string]any{
		"address": unknown{}, "endpoint": unknown{}, "connection_uri": unknown{}, "jdbc_url": unknown{}, "engine_version_actual": unknown{},
	})
	static := map[string]any{"address": "10.50.0.42/24", "gateway": "10.50.0.1", "nameservers": []any{"10.50.0.2"}}
	stoppedState := map[string]any{"status": "stopped", "running": false}
	for story, test := range map[string]struct {
		state  map[string]any // changes to standing
		config map[string]any // changes to minimal
		want   map[string]any // what the plan changes of the state
	}{
		"nothing": {},
		"standing values written out": {config: map[string]any{
			"namespace": "tenant-acme", "engine_version": "16", "db_name": "orders", "port": 5432, "os_image": "debian", "storage_type": "longhorn",
		}},
		"image with the namespace it is looked up in": {config: map[string]any{"os_image": "default/debian"}},
		"image without it": {
			state: map[string]any{"os_image": "default/debian"}, config: map[string]any{"os_image": "debian"},
		},
		"network of its own namespace written short": {
			state: map[string]any{"network_ref": "tenant-acme/vlan"}, config: map[string]any{"network_ref": "vlan"},
		},
		"static network left out": {state: map[string]any{"static_network": static}},
		"static network as it is": {state: map[string]any{"static_network": static}, config: map[string]any{"static_network": static}},
		"protection": {
			config: map[string]any{"deletion_protection": true},
			want:   map[string]any{"deletion_protection": true},
		},
		"password into the Secret only": {
			config: map[string]any{"manage_master_user_password": true},
			want:   map[string]any{"manage_master_user_password": true, "master_password": nil},
		},
		"password into the state": {
			state: map[string]any{"manage_master_user_password": true, "master_password": nil},
			want:  map[string]any{"manage_master_user_password": false, "master_password": unknown{}},
		},
		"timeouts": {
			config: map[string]any{"timeouts": map[string]any{"create": "1h"}},
			want:   map[string]any{"timeouts": map[string]any{"create": "1h"}},
		},
		"bootstrap material left":        {state: map[string]any{"status_reason": "BootstrapMaterialPresent"}, want: unread},
		"wait left after untaint":        {state: map[string]any{"status": "creating", "status_reason": "Booting"}, want: unreachable},
		"failure left after untaint":     {state: map[string]any{"status": "failed", "status_reason": "GuestFailed"}, want: unreachable},
		"degraded is not ours to mend":   {state: map[string]any{"status": "degraded", "status_reason": "NotReady"}},
		"credentials removed on purpose": {state: map[string]any{"status_reason": "CredentialsMissing"}},
		"value known only after apply": {
			config: map[string]any{"engine_version": unknown{}},
			want:   map[string]any{"engine_version": unknown{}},
		},
		"class": {
			config: map[string]any{"instance_class": "db.t3.small"},
			want: with(unreachable, map[string]any{
				"instance_class": "db.t3.small", "memory_mib": 2048, "max_connections": 100,
			}),
		},
		"class of the same size": {
			state: map[string]any{"instance_class": "db.t3.large", "vcpu": 2, "memory_mib": 8192, "max_connections": 200}, config: map[string]any{"instance_class": "db.m5.large"},
			want: map[string]any{"instance_class": "db.m5.large"},
		},
		"size that somebody else changed": {
			state: map[string]any{"vcpu": 3}, want: with(unreachable, map[string]any{"vcpu": 1}),
		},
		"class while it stands still": {
			state: stoppedState, config: map[string]any{"instance_class": "db.t3.small", "running": false},
			want: map[string]any{"instance_class": "db.t3.small", "memory_mib": 2048, "max_connections": 100},
		},
		"growth": {
			config: map[string]any{"allocated_storage": 20},
			want:   with(unreachable, map[string]any{"allocated_storage": 20}),
		},
		"growth while it stands still": {
			state: stoppedState, config: map[string]any{"allocated_storage": 20, "running": false},
			want: map[string]any{"allocated_storage": 20},
		},
		"stop":  {config: map[string]any{"running": false}, want: with(unreachable, map[string]any{"running": false})},
		"start": {state: stoppedState, want: with(unreachable, map[string]any{"running": true})},
		"setting": {
			config: map[string]any{"parameters": map[string]any{"work_mem": "8MB"}},
			want:   with(unreachable, map[string]any{"parameters": map[string]any{"work_mem": "8MB"}}),
		},
		"setting that is known only after apply": {
			config: map[string]any{"parameters": unknown{}},
			want:   with(unreachable, map[string]any{"parameters": unknown{}}),
		},
		"empty collections are none": {config: map[string]any{
			"parameters": map[string]any{}, "extensions": []any{}, "dns_names": []any{}, "ssh_public_keys": []any{}, "tags": map[string]any{},
			"allowed_cidrs": []any{"::/0", "0.0.0.0/0"},
		}},
		"tags": {
			config: map[string]any{"tags": map[string]any{"team": "payments"}},
			want:   map[string]any{"tags": map[string]any{"team": "payments"}, "tags_all": map[string]any{"team": "payments"}},
		},
		"policy": {config: map[string]any{"deletion_policy": "retain"}, want: map[string]any{"deletion_policy": "retain"}},
		"package source": {
			config: map[string]any{"package_source": map[string]any{"apt_proxy": "http://proxy:3142"}},
			want:   map[string]any{"package_source": map[string]any{"apt_proxy": "http://proxy:3142"}},
		},
		"monitoring switched on": {
			config: map[string]any{"monitoring": map[string]any{}},
			want:   with(unreachable, map[string]any{"monitoring": monitored(nil), "resources": unknown{}}),
		},
		"monitoring switched off": {
			state: watched(), want: with(unreachable, map[string]any{"monitoring": nil, "resources": unknown{}}),
		},
		"monitoring as it is": {state: watched(), config: map[string]any{"monitoring": map[string]any{}}},
		"other readers": {
			state: watched(), config: map[string]any{"monitoring": map[string]any{"allowed_cidrs": []any{"10.52.0.0/16"}}},
			want: with(unreachable, map[string]any{"monitoring": monitored(map[string]any{"allowed_cidrs": []any{"10.52.0.0/16"}})}),
		},
		"other interval": {
			state: watched(), config: map[string]any{"monitoring": map[string]any{"scrape_interval": "1m"}},
			want: map[string]any{"monitoring": monitored(map[string]any{"scrape_interval": "1m"})},
		},
		"Grafana": {
			state: watched(), config: map[string]any{"monitoring": map[string]any{"grafana_base_url": "https://grafana.example.com/g/"}},
			want: map[string]any{
				"monitoring":  monitored(map[string]any{"grafana_base_url": "https://grafana.example.com/g/"}),
				"grafana_url": "https://grafana.example.com/g/d/dbaas-postgresql?var-namespace=tenant-acme&var-instance=orders",
			},
		},
		"Grafana that is known only after apply": {
			state: watched(), config: map[string]any{"monitoring": map[string]any{"grafana_base_url": unknown{}}},
			want: map[string]any{"monitoring": monitored(map[string]any{"grafana_base_url": unknown{}}), "grafana_url": unknown{}},
		},
		"monitoring while it stands still": {
			state: stoppedState, config: map[string]any{"monitoring": map[string]any{}, "running": false},
			want: map[string]any{"monitoring": monitored(nil), "resources": unknown{}},
		},
		"metrics looked for elsewhere": {
			state: with(watched(), map[string]any{"status_reason": "MetricsAddressStale"}), config: map[string]any{"monitoring": map[string]any{}}, want: unread,
		},
		"metrics' objects are gone": {
			state: with(watched(), map[string]any{"status_reason": "MetricsAddressStale", "resources": standing()["resources"]}), config: map[string]any{"monitoring": map[string]any{}},
			want: with(unread, map[string]any{"resources": unknown{}}),
		},
		"restart left":              {state: map[string]any{"status_reason": "PendingRestart"}, want: unreachable},
		"restart left, not serving": {state: map[string]any{"status": "degraded", "status_reason": "PendingRestart"}, want: unreachable},
		"lost machine":              {state: map[string]any{"status": "failed", "status_reason": "VMMissing"}, want: unreachable},
		"replaced volume":           {state: map[string]any{"status": "failed", "status_reason": "DataVolumeReplaced"}},
		"class of the instance is not asked for in the catalogue": {
			state: map[string]any{"instance_class": "db.old"}, config: map[string]any{"instance_class": "db.old", "deletion_protection": true},
			want: map[string]any{"deletion_protection": true},
		},
	} {
		t.Run(story, func(t *testing.T) {
			w := planner(t)
			state := with(standing(), test.state)
			resp := w.plan(state, with(minimal(), test.config))
			noErrors(t, resp.Diagnostics)
			if len(resp.RequiresReplace) > 0 {
				t.Errorf("the plan replaces the instance: %v", resp.RequiresReplace)
			}
			changed := map[string]any{}
			before, after := w.unpack(w.pack(w.instance(), state)), w.unpack(resp.PlannedState)
			for _, attribute := range w.instance().Block.Attributes {
				if !cmp.Equal(before[attribute.Name], after[attribute.Name]) {
					changed[attribute.Name] = after[attribute.Name]
				}
			}
			if diff := cmp.Diff(with(map[string]any{}, test.want), changed); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPlanRefusesToChangeWhatIsSettled(t *testing.T) {
	static := map[string]any{"address": "10.50.0.42/24", "gateway": "10.50.0.1", "nameservers": []any{"10.50.0.2"}}
	for _, test := range []struct {
		attribute string
		value     any
		text      string
	}{
		{"engine_version", "17", `has engine_version = "16"; the configuration says engine_version = "17"`},
		{"db_name", "other", `has db_name = "orders"`},
		{"master_username", "other", `write master_username = "dbadmin", or leave it out`},
		{"port", 5433, "has port = 5432; the configuration says port = 5433"},
		{"os_image", "other/debian", "pg_dump and pg_restore"},
		{"storage_type", "fast", "under another name"},
		{"network_ref", "default/vm-net-200", `To keep the instance, write network_ref = "default/vm-net-100".`},
		{"static_network", static, "has no static_network"},
		{"instance_class", "db.t3.huge", "db.t3.small"},
		{"allocated_storage", 5, "Write allocated_storage = 10."},
		{"name", unknown{}, "must be known"},
		{"namespace", unknown{}, "must be known"},
	} {
		t.Run(test.attribute, func(t *testing.T) {
			resp := planner(t).plan(standing(), with(minimal(), map[string]any{test.attribute: test.value}))
			told(t, resp.Diagnostics, test.attribute, test.text)
			if len(resp.RequiresReplace) > 0 {
				t.Errorf("the plan replaces the instance: %v", resp.RequiresReplace)
			}
		})
	}
}

func TestPlanDoesNotChangeTheOperatorsInstance(t *testing.T) {
	w := planner(t)
	theirs := with(standing(), map[string]any{"status_reason": "OperatorManaged"})
	noErrors(t, w.plan(theirs, minimal()).Diagnostics)
	resp := w.plan(theirs, with(minimal(), map[string]any{"deletion_protection": true}))
	if len(resp.Diagnostics) != 1 || !strings.Contains(resp.Diagnostics[0].Detail, "belongs to the DBaaS operator") {
		t.Errorf("told: %v", resp.Diagnostics)
	}
	resp = w.plan(theirs, with(minimal(), map[string]any{"instance_class": "db.t3.small", "tags": map[string]any{"a": "b"}}))
	told(t, resp.Diagnostics, "instance_class", "Write instance_class, tags as it stands")
}

func TestRenamePlansAReplaceAndRecordsWhy(t *testing.T) {
	for _, change := range []map[string]any{{"name": "other"}, {"namespace": "other"}} {
		resp := planner(t).plan(standing(), with(minimal(), change))
		noErrors(t, resp.Diagnostics)
		if len(resp.RequiresReplace) != 1 {
			t.Errorf("%v: replace because of %v", change, resp.RequiresReplace)
		}
		recorded(t, resp, `"rename"`)
	}
}

func TestEveryPlanRecordsWhyDeleteWouldBeCalled(t *testing.T) {
	w := planner(t)
	recorded(t, w.plan(standing(), nil), `"destroy"`)
	recorded(t, w.plan(standing(), minimal()), `"other"`)
}

func TestProtectedInstanceIsNotPlannedAway(t *testing.T) {
	protected := with(standing(), map[string]any{"deletion_protection": true})
	unprotect := with(minimal(), map[string]any{"deletion_protection": false})
	for story, config := range map[string]map[string]any{
		"destroy":                       nil,
		"rename":                        with(minimal(), map[string]any{"name": "other", "deletion_protection": true}),
		"move":                          with(minimal(), map[string]any{"namespace": "other", "deletion_protection": true}),
		"rename with protection lifted": with(unprotect, map[string]any{"name": "other"}),
	} {
		t.Run(story, func(t *testing.T) {
			told(t, planner(t).plan(protected, config).Diagnostics, "deletion_protection", "deletion_protection = false first")
		})
	}
	t.Run("never available", func(t *testing.T) {
		unborn := with(protected, map[string]any{"status": "creating", "status_reason": "Booting"})
		noErrors(t, planner(t).plan(unborn, nil).Diagnostics)
	})
}

func recorded(t *testing.T, resp *tfprotov6.PlanResourceChangeResponse, intent string) {
	t.Helper()
	noErrors(t, resp.Diagnostics)
	want := map[string]string{intentKey: intent}
	if diff := cmp.Diff(want, privateOf(t, resp.PlannedPrivate)); diff != "" {
		t.Error(diff)
	}
}
