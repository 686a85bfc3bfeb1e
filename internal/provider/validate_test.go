package provider

import (
	"strings"
	"testing"
)

func TestInvalidConfigurationIsRefusedAtItsArgument(t *testing.T) {
	static := func(changes map[string]any) map[string]any {
		network := map[string]any{"address": "10.50.0.42/24", "gateway": "10.50.0.1", "nameservers": []any{"10.50.0.2"}}
		return map[string]any{"static_network": with(network, changes)}
	}
	for _, test := range []struct {
		story     string
		changes   map[string]any
		attribute string
		text      string
	}{
		{"long name", map[string]any{"name": strings.Repeat("a", 53)}, "name", "has 53 characters, at most 52"},
		{"capital in name", map[string]any{"name": "Orders"}, "name", "not a DNS label"},
		{"name ends with dash", map[string]any{"name": "orders-"}, "name", "not a DNS label"},
		{"empty name", map[string]any{"name": ""}, "name", "not a DNS label"},
		{"empty class", map[string]any{"instance_class": ""}, "instance_class", "at least 1"},
		{"no storage", map[string]any{"allocated_storage": 0}, "allocated_storage", "between 1 and"},
		{"empty network", map[string]any{"network_ref": ""}, "network_ref", `write "namespace/name"`},
		{"network without name", map[string]any{"network_ref": "default/"}, "network_ref", `write "namespace/name"`},
		{"network of three parts", map[string]any{"network_ref": "a/b/c"}, "network_ref", `write "namespace/name"`},
		{"namespace with dot", map[string]any{"namespace": "a.b"}, "namespace", "is not a namespace"},
		{"old engine", map[string]any{"engine_version": "12"}, "engine_version", `"13"`},
		{"minor engine", map[string]any{"engine_version": "16.4"}, "engine_version", `"16"`},
		{"reserved database", map[string]any{"db_name": "template1"}, "db_name", "PostgreSQL makes for itself"},
		{"database with dash", map[string]any{"db_name": "my-db"}, "db_name", "not usable as a database name"},
		{"long database", map[string]any{"db_name": strings.Repeat("a", 64)}, "db_name", "at most 63"},
		{"superuser", map[string]any{"master_username": "postgres"}, "master_username", "is reserved"},
		{"predefined role", map[string]any{"master_username": "pg_monitor"}, "master_username", "is reserved"},
		{"user with digit first", map[string]any{"master_username": "1admin"}, "master_username", "not beginning with a digit"},
		{"port 0", map[string]any{"port": 0}, "port", "between 1 and 65535"},
		{"port 65536", map[string]any{"port": 65536}, "port", "between 1 and 65535"},
		{"empty image", map[string]any{"os_image": ""}, "os_image", "image must be named"},
		{"image namespace alone", map[string]any{"os_image": "default/"}, "os_image", "no image in it"},
		{"storage class with slash", map[string]any{"storage_type": "a/b"}, "storage_type", "not the name of a Kubernetes object"},
		{"address without length", static(map[string]any{"address": "10.50.0.42"}), "static_network", "such as 10.50.0.42/24"},
		{"network's own address", static(map[string]any{"address": "10.50.0.0/24"}), "static_network", "the network itself"},
		{"broadcast address", static(map[string]any{"address": "10.50.0.255/24"}), "static_network", "broadcast"},
		{"link-local address", static(map[string]any{"address": "169.254.1.1/16", "gateway": "169.254.1.2"}), "static_network", "link-local"},
		{"address written otherwise", static(map[string]any{"address": "2001:DB8::1/64", "gateway": "2001:db8::2"}), "static_network", "must be written 2001:db8::1/64"},
		{"gateway elsewhere", static(map[string]any{"gateway": "10.51.0.1"}), "static_network", "outside the network 10.50.0.0/24"},
		{"gateway of another family", static(map[string]any{"gateway": "2001:db8::1"}), "static_network", "outside the network"},
		{"gateway is the instance", static(map[string]any{"gateway": "10.50.0.42"}), "static_network", "own address"},
		{"no nameserver", static(map[string]any{"nameservers": []any{}}), "static_network", "at least 1"},
		{"nameserver by name", static(map[string]any{"nameservers": []any{"ns.example.com"}}), "static_network", "not an IP address"},
		{"empty search list", static(map[string]any{"search_domains": []any{}}), "static_network", "at least 1"},
		{"timeout without unit", map[string]any{"timeouts": map[string]any{"create": "30"}}, "timeouts", "Duration"},
	} {
		t.Run(test.story, func(t *testing.T) {
			told(t, newWire(t, nil).validate(with(minimal(), test.changes)), test.attribute, test.text)
		})
	}
}

func TestValidConfigurationIsAccepted(t *testing.T) {
	for story, changes := range map[string]map[string]any{
		"required arguments only": {},
		"longest name":            {"name": strings.Repeat("a", 52)},
		"network of its own":      {"network_ref": "vm-net-100"},
		"display name as image":   {"os_image": "Debian 12 (generic) amd64.qcow2"},
		"all unknown": {
			"name": unknown{}, "instance_class": unknown{}, "allocated_storage": unknown{}, "network_ref": unknown{}, "namespace": unknown{},
			"engine_version": unknown{}, "db_name": unknown{}, "port": unknown{}, "static_network": unknown{}, "deletion_protection": unknown{},
		},
		"static network partly unknown": {"static_network": map[string]any{"address": unknown{}, "gateway": "10.0.0.1", "nameservers": unknown{}}},
		"static network of two": {"static_network": map[string]any{
			"address": "10.0.0.0/31", "gateway": "10.0.0.1", "nameservers": []any{"1.1.1.1", "2606:4700::1"}, "search_domains": []any{"example.com"},
		}},
	} {
		t.Run(story, func(t *testing.T) {
			noErrors(t, newWire(t, nil).validate(with(minimal(), changes)))
		})
	}
}
