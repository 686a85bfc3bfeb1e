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
		{"empty image", map[string]any{"os_image": ""}, "os_image", "No image is named"},
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
		{"the provider's port", map[string]any{"parameters": map[string]any{"port": "1"}}, "parameters", "set by the provider"},
		{"the provider's TLS", map[string]any{"parameters": map[string]any{"ssl_ciphers": "all"}}, "parameters", "ssl*"},
		{"capital letters do not hide a setting", map[string]any{"parameters": map[string]any{"Listen_Addresses": "*"}}, "parameters", "set by the provider"},
		{"path of a file", map[string]any{"parameters": map[string]any{"hba_file": "/tmp/x"}}, "parameters", "*_file"},
		{"command", map[string]any{"parameters": map[string]any{"archive_cleanup_command": "rm"}}, "parameters", "set by the provider"},
		{"library", map[string]any{"parameters": map[string]any{"shared_preload_libraries": "x"}}, "parameters", "*_libraries"},
		{"include", map[string]any{"parameters": map[string]any{"include_if_exists": "x"}}, "parameters", "include*"},
		{"data at risk", map[string]any{"parameters": map[string]any{"fsync": "off"}}, "parameters", "endanger"},
		{"no setting", map[string]any{"parameters": map[string]any{"work mem": "1"}}, "parameters", "not the name of a setting"},
		{"NUL in a value", map[string]any{"parameters": map[string]any{"work_mem": "1\x00"}}, "parameters", "NUL"},
		{"one setting twice", map[string]any{"parameters": map[string]any{"work_mem": "1MB", "Work_mem": "2MB"}}, "parameters", "one setting"},
		{"null value", map[string]any{"parameters": map[string]any{"work_mem": nil}}, "parameters", "Leave it out"},
		{"extension that reads files", map[string]any{"extensions": []any{"file_fdw"}}, "extensions", "pg_stat_statements"},
		{"address without network", map[string]any{"allowed_cidrs": []any{"10.0.0.7"}}, "allowed_cidrs", "10.0.0.7/32"},
		{"network with host bits", map[string]any{"allowed_cidrs": []any{"10.0.0.7/8"}}, "allowed_cidrs", "must be written 10.0.0.0/8"},
		{"address as a name", map[string]any{"dns_names": []any{"10.0.0.7"}}, "dns_names", "every address"},
		{"name with underscore", map[string]any{"dns_names": []any{"a_b.example.com"}}, "dns_names", "not a DNS name"},
		{"long label", map[string]any{"dns_names": []any{strings.Repeat("a", 64) + ".example.com"}}, "dns_names", "not a DNS name"},
		{"no key", map[string]any{"ssh_public_keys": []any{"ssh-ed25519 nonsense"}}, "ssh_public_keys", "authorized_keys"},
		{"key with newline", map[string]any{"ssh_public_keys": []any{sshKey + "\n"}}, "ssh_public_keys", "trimspace"},
		{"key with options", map[string]any{"ssh_public_keys": []any{"no-pty " + sshKey}}, "ssh_public_keys", "options"},
		{"two keys in one", map[string]any{"ssh_public_keys": []any{sshKey + "\n" + sshKey}}, "ssh_public_keys", "one line"},
		{"empty source", map[string]any{"package_source": map[string]any{}}, "package_source", "leave package_source out"},
		{"proxy without scheme", map[string]any{"package_source": map[string]any{"apt_proxy": "proxy:3142"}}, "package_source", "not an http or https URL"},
		{"mirror with a quote", map[string]any{"package_source": map[string]any{"pgdg_mirror": "http://a/\""}}, "package_source", "apt's files"},
		{"interval without unit", map[string]any{"monitoring": map[string]any{"scrape_interval": "15"}}, "monitoring", "duration of Prometheus"},
		{"empty interval", map[string]any{"monitoring": map[string]any{"scrape_interval": ""}}, "monitoring", "duration of Prometheus"},
		{"interval in the wrong order", map[string]any{"monitoring": map[string]any{"scrape_interval": "30s1m"}}, "monitoring", "1m30s"},
		{"interval of a fraction", map[string]any{"monitoring": map[string]any{"scrape_interval": "1.5m"}}, "monitoring", "Invalid scrape_interval"},
		{"no interval", map[string]any{"monitoring": map[string]any{"scrape_interval": "0s"}}, "monitoring", "between 1ms and 1d"},
		{"interval of weeks", map[string]any{"monitoring": map[string]any{"scrape_interval": "999999999h"}}, "monitoring", "between 1ms and 1d"},
		{"Grafana without scheme", map[string]any{"monitoring": map[string]any{"grafana_base_url": "grafana.example.com"}}, "monitoring", "Invalid grafana_base_url"},
		{"Grafana without host", map[string]any{"monitoring": map[string]any{"grafana_base_url": "https:///grafana"}}, "monitoring", "such as https://grafana.example.com"},
		{"Grafana with a query", map[string]any{"monitoring": map[string]any{"grafana_base_url": "https://grafana.example.com/?orgId=1"}}, "monitoring", "a query"},
		{"reader without network", map[string]any{"monitoring": map[string]any{"allowed_cidrs": []any{"10.0.0.7"}}}, "monitoring", "10.0.0.7/32"},
		{"null reader", map[string]any{"monitoring": map[string]any{"allowed_cidrs": []any{nil}}}, "monitoring", "Invalid allowed_cidrs"},
		{"tag with slash", map[string]any{"tags": map[string]any{"a/b": "c"}}, "tags", "not usable as the key"},
		{"tag with a sentence", map[string]any{"tags": map[string]any{"a": "b c"}}, "tags", "cannot have the value"},
		{"policy of others", map[string]any{"deletion_policy": "snapshot"}, "deletion_policy", "retain"},
		{"timeout without unit", map[string]any{"timeouts": map[string]any{"create": "30"}}, "timeouts", "Duration"},
	} {
		t.Run(test.story, func(t *testing.T) {
			told(t, newWire(t, nil).validate(with(minimal(), test.changes)), test.attribute, test.text)
		})
	}
}

// A public key that belongs to nobody.
const sshKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ6mIHiqRYdU9v9Sl3SkB6PcXSxOWR4vUfTTLH8kdIbm somebody@example.com"

func TestPrivateKeyIsNotQuoted(t *testing.T) {
	const secret = "b3BlbnNzaC1rZXktdjEAAAAA"
	pasted := "-----BEGIN OPENSSH PRIVATE KEY-----\n" + secret + "\n-----END OPENSSH PRIVATE KEY-----"
	told := newWire(t, nil).validate(with(minimal(), map[string]any{"ssh_public_keys": []any{pasted, secret}}))
	if len(told) != 2 {
		t.Errorf("%d errors, want one for each element", len(told))
	}
	for _, d := range told {
		if strings.Contains(d.Summary+d.Detail+d.Attribute.String(), secret) {
			t.Error("the error repeats the key")
		}
	}
}

func TestPasswordInAURLIsNotQuoted(t *testing.T) {
	const secret = "correct-horse"
	for _, base := range []string{"https://admin:" + secret + "@grafana.example.com", "https://admin:" + secret + "%zz@grafana.example.com", "admin:" + secret + "@grafana", "https://grafana.example.com/?token=" + secret} {
		diags := newWire(t, nil).validate(with(minimal(), map[string]any{"monitoring": map[string]any{"grafana_base_url": base}}))
		told(t, diags, "monitoring", "Invalid grafana_base_url")
		for _, d := range diags {
			if strings.Contains(d.Summary+d.Detail+d.Attribute.String(), secret) {
				t.Error("the error repeats the password")
			}
		}
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
		"what the guest applies": {
			"parameters": map[string]any{"work_mem": "16MB", "TimeZone": "UTC", "pg_stat_statements.max": "1000", "search_path": `"$user", public`},
			"extensions": []any{"pg_stat_statements", "uuid-ossp"}, "allowed_cidrs": []any{"10.0.0.0/8", "fd00::/8", "10.0.0.7/32"},
			"dns_names": []any{"orders.example.com", "*.db.example.com", "orders"}, "ssh_public_keys": []any{sshKey},
			"package_source": map[string]any{"apt_proxy": "http://proxy.example.com:3142"}, "tags": map[string]any{"team": "payments", "empty": ""},
		},
		"nothing for the guest": {
			"parameters": map[string]any{}, "extensions": []any{}, "allowed_cidrs": []any{}, "dns_names": []any{}, "ssh_public_keys": []any{}, "tags": map[string]any{},
		},
		"guest partly unknown": {
			"parameters": map[string]any{"work_mem": unknown{}}, "extensions": []any{unknown{}}, "allowed_cidrs": unknown{}, "ssh_public_keys": []any{unknown{}},
			"package_source": map[string]any{"apt_proxy": unknown{}}, "tags": map[string]any{"a": unknown{}},
		},
		"monitoring":                    {"monitoring": map[string]any{}},
		"monitoring by nobody":          {"monitoring": map[string]any{"allowed_cidrs": []any{}}},
		"monitoring with all":           {"monitoring": map[string]any{"scrape_interval": "1m30s", "grafana_base_url": "https://harvester.example.com/api/v1/namespaces/cattle-monitoring-system/services/http:rancher-monitoring-grafana:80/proxy/", "allowed_cidrs": []any{"10.52.0.0/16"}}},
		"monitoring partly known":       {"monitoring": map[string]any{"scrape_interval": unknown{}, "grafana_base_url": unknown{}, "allowed_cidrs": unknown{}}},
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
