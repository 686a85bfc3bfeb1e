package cloudinit_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
)

// boot runs the document's bootcmd as cloud-init does, with sh, in a root of
// its own where the commands that touch the machine do nothing but say so.
func boot(t *testing.T, root string, document []byte) (commands string) {
	t.Helper()
	var parsed struct {
		Bootcmd []string `json:"bootcmd"`
	}
	if err := yaml.Unmarshal(document, &parsed); err != nil || len(parsed.Bootcmd) != 1 {
		t.Fatal(err, len(parsed.Bootcmd))
	}
	bin, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	for _, name := range []string{"systemctl", "udevadm", "sync"} {
		stub := "#!/bin/sh\n[ " + name + " = sync ] || echo " + name + " \"$@\" >> " + log + "\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(stub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := filepath.Join(t.TempDir(), "bootcmd")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"+parsed.Bootcmd[0]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "/bin/sh", script)
	command.Env = []string{"DBAAS_ROOT=" + root, "PATH=" + bin + ":" + os.Getenv("PATH")}
	command.Dir = t.TempDir()
	if out, err := command.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("bootcmd: %v: %s", err, out)
	}
	left, err := os.ReadDir(command.Dir)
	if err != nil || len(left) > 0 {
		t.Errorf("the bootcmd ran something: %v %v", left, err)
	}
	out, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func render(t *testing.T, c cloudinit.Config, b *cloudinit.Bootstrap) []byte {
	t.Helper()
	document, err := cloudinit.UserData(c, b)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func TestTheBootcmdWritesEveryFileAndStartsConverge(t *testing.T) {
	root := t.TempDir()
	commands := boot(t, root, render(t, minimal(), bootstrap()))
	want := "systemctl daemon-reload\nudevadm control --reload\n" +
		"systemctl --no-block start dbaas-watch.service dbaas-scrub.service\n" +
		"systemctl --no-block restart dbaas-converge.service\n"
	if diff := cmp.Diff(want, commands); diff != "" {
		t.Error(diff)
	}
	modes := map[string]string{}
	for path := range strings.FieldsSeq(bash(t, `cd "$1" && find . -type f`, root)) {
		info, err := os.Stat(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		modes[strings.TrimPrefix(path, ".")] = info.Mode().String()
	}
	wantModes := map[string]string{
		"/etc/dbaas/bootstrap.env":                   "-rw-r--r--",
		"/etc/dbaas/bootstrap.sh":                    "-rwxr-xr-x",
		"/etc/dbaas/config.json":                     "-rw-r--r--",
		"/etc/dbaas/parts/certificate.sh":            "-rw-r--r--",
		"/etc/dbaas/parts/cluster.sh":                "-rw-r--r--",
		"/etc/dbaas/parts/configuration.sh":          "-rw-r--r--",
		"/etc/dbaas/parts/disk.sh":                   "-rw-r--r--",
		"/etc/dbaas/parts/exporter.sh":               "-rw-r--r--",
		"/etc/dbaas/parts/logins.sh":                 "-rw-r--r--",
		"/etc/dbaas/parts/objects.sh":                "-rw-r--r--",
		"/etc/dbaas/parts/packages.sh":               "-rw-r--r--",
		"/etc/dbaas/parts/report.sh":                 "-rw-r--r--",
		"/etc/dbaas/parts/sizing.sh":                 "-rw-r--r--",
		"/etc/dbaas/parts/watch.sh":                  "-rw-r--r--",
		"/etc/systemd/system/dbaas-converge.service": "-rw-r--r--",
		"/etc/systemd/system/dbaas-grow.service":     "-rw-r--r--",
		"/etc/systemd/system/dbaas-scrub.service":    "-rw-r--r--",
		"/etc/systemd/system/dbaas-watch.service":    "-rw-r--r--",
		"/etc/udev/rules.d/90-dbaas-grow.rules":      "-rw-r--r--",
		"/run/dbaas/secret/ca.key":                   "-rw-------",
		"/run/dbaas/secret/verifier":                 "-rw-------",
		"/usr/local/sbin/dbaas-ready":                "-rwxr-xr-x",
	}
	if diff := cmp.Diff(wantModes, modes); diff != "" {
		t.Error(diff)
	}
}

func TestFilesArriveByteForByte(t *testing.T) {
	root := t.TempDir()
	boot(t, root, render(t, minimal(), bootstrap()))
	for source, path := range map[string]string{
		"bootstrap.sh": "/etc/dbaas/bootstrap.sh", "configuration.sh": "/etc/dbaas/parts/configuration.sh",
		"dbaas-ready.sh": "/usr/local/sbin/dbaas-ready", "90-dbaas-grow.rules": "/etc/udev/rules.d/90-dbaas-grow.rules",
	} {
		want, err := os.ReadFile(filepath.Join("guest", source))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Error(source, diff)
		}
	}
	secret, err := os.ReadFile(filepath.Join(root, "run/dbaas/secret/ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(bootstrap().CAKey, string(secret)); diff != "" {
		t.Error(diff)
	}
}

func TestASecondBootReplacesTheFiles(t *testing.T) {
	root := t.TempDir()
	boot(t, root, render(t, minimal(), nil))
	other := with(func(c *cloudinit.Config) { c.Port = 6543 })
	boot(t, root, render(t, other, nil))
	got := bash(t, `. "$1/etc/dbaas/bootstrap.env"; echo "$DBAAS_PORT $DBAAS_HASH"`, root)
	if diff := cmp.Diff("6543 "+other.Hash()+"\n", got); diff != "" {
		t.Error(diff)
	}
}

func TestHostileValuesReachTheScriptsAsData(t *testing.T) {
	root := t.TempDir()
	c := full()
	c.MasterUsername, c.DBName = hostile, strings.Repeat(hostile, 2)
	boot(t, root, render(t, c, nil))
	got := strings.Split(bash(t, `. "$1/etc/dbaas/bootstrap.env"
		printf '%s\0' "$DBAAS_ROLE" "$DBAAS_DATABASE" "$DBAAS_CIDRS" "$DBAAS_DNS_NAMES" "$DBAAS_APT_PROXY" "$DBAAS_CA_CERT"`, root), "\x00")
	want := []string{
		c.MasterUsername, c.DBName, "10.0.0.0/8 fd00::/8", "*.db.example.test orders.example.test",
		c.PackageSource.APTProxy, strings.TrimSpace(caCert), "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOwnersParametersStandBetweenDefaultsAndWhatTheMachineOwns(t *testing.T) {
	root := t.TempDir()
	c := full()
	c.Parameters = map[string]string{"work_mem": "8MB", "port": "1", "log_line_prefix": "it's \\ a\nb"}
	boot(t, root, render(t, c, nil))
	got := bash(t, `. "$1/etc/dbaas/bootstrap.env"; for part in sizing configuration; do . "$1/etc/dbaas/parts/$part.sh"; done
		memory_mib() { echo 4096; }
		nproc() { echo 2; }
		tls=/tls
		settings`, root)
	want := `# Written at every boot from /etc/dbaas/bootstrap.env. Memory: 4096 MiB
shared_buffers = 1024MB
effective_cache_size = 3072MB
work_mem = 20MB
maintenance_work_mem = 256MB
autovacuum_work_mem = 64MB
max_wal_size = 2048MB
min_wal_size = 512MB
max_worker_processes = 8
max_parallel_workers = 2
max_parallel_workers_per_gather = 1
max_parallel_maintenance_workers = 1
random_page_cost = 1.1
# The owner's parameters
log_line_prefix = 'it''s \\ a\nb'
port = '1'
shared_preload_libraries = 'pg_stat_statements'
work_mem = '8MB'
# The machine's
listen_addresses = '*'
port = 5432
max_connections = 50
password_encryption = 'scram-sha-256'
ssl = on
ssl_cert_file = '/tls/server.crt'
ssl_key_file = '/tls/server.key'
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestHostRulesWantTLS(t *testing.T) {
	for name, test := range map[string]struct {
		networks []string
		want     string
	}{
		"every network": {nil, "local all all peer\nhostssl all all 0.0.0.0/0 scram-sha-256\nhostssl all all ::/0 scram-sha-256\n"},
		"one network":   {[]string{"10.0.0.0/8"}, "local all all peer\nhostssl all all 10.0.0.0/8 scram-sha-256\n"},
		"no network":    {[]string{}, "local all all peer\n"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			boot(t, root, render(t, with(func(c *cloudinit.Config) { c.AllowedCIDRs = test.networks }), nil))
			got := bash(t, `. "$1/etc/dbaas/bootstrap.env"; . "$1/etc/dbaas/parts/configuration.sh"; host_rules`, root)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheExporterIsForTheNetworksThatMayReadIt(t *testing.T) {
	for name, test := range map[string]struct{ networks, want string }{
		"every network": {"", "IPAddressAllow=0.0.0.0/0\nIPAddressAllow=::/0\n"},
		"two networks":  {"10.0.0.0/8 fd00::/8", "IPAddressAllow=10.0.0.0/8\nIPAddressAllow=fd00::/8\n"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			c := with(func(c *cloudinit.Config) { c.Monitoring = new(cloudinit.Monitoring) })
			if test.networks != "" {
				c.Monitoring.AllowedCIDRs = strings.Fields(test.networks)
			}
			boot(t, root, render(t, c, nil))
			got := bash(t, `. "$1/etc/dbaas/bootstrap.env"; . "$1/etc/dbaas/parts/exporter.sh"; exporter_settings`, root)
			want := "[Service]\nEnvironmentFile=/etc/dbaas/exporter.env\nRestart=always\nIPAccounting=yes\nIPAddressDeny=any\nIPAddressAllow=localhost\n" + test.want
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			rules := bash(t, `. "$1/etc/dbaas/bootstrap.env"; . "$1/etc/dbaas/parts/configuration.sh"; host_rules | head -n 1`, root)
			if diff := cmp.Diff("local postgres postgres_exporter peer map=exporter\n", rules); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A kernel that filters nothing for systemd counts nothing either, and then the
// guest says that the networks are not kept.
func TestAnExporterThatIsNotGuardedIsSaid(t *testing.T) {
	const narrow, every = "10.0.0.0/8", "0.0.0.0/0 ::/0"
	for name, test := range map[string]struct{ networks, counted, want string }{
		"filtered":             {narrow, "1234", "guarded"},
		"nothing came yet":     {narrow, "0", "guarded"},
		"no BPF":               {narrow, "[no data]", "open"},
		"no BPF, as a number":  {narrow, "18446744073709551615", "open"},
		"no such property":     {narrow, "", "open"},
		"nobody":               {"", "[no data]", "open"},
		"all may read":         {every, "[no data]", "guarded"},
		"all of IPv4 may read": {"0.0.0.0/0", "[no data]", "open"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			boot(t, root, render(t, with(func(c *cloudinit.Config) { c.Monitoring = new(cloudinit.Monitoring) }), nil))
			got := bash(t, `. "$1/etc/dbaas/bootstrap.env"; . "$1/etc/dbaas/parts/exporter.sh"
				systemctl() { printf '%s\n' '`+test.counted+`'; }
				DBAAS_MONITORING_CIDRS='`+test.networks+`'
				if exporter_guarded; then printf guarded; else printf open; fi`, root)
			if got != test.want {
				t.Errorf("it is %s, want %s", got, test.want)
			}
		})
	}
}

// An extension that PostgreSQL must load at its start does not displace what
// the owner wants loaded.
func TestLibrariesOfExtensionsAndOwner(t *testing.T) {
	for name, test := range map[string]struct {
		parameters map[string]string
		extensions []string
		want       string
	}{
		"none":            {nil, []string{"pg_trgm"}, ""},
		"an extension's":  {nil, []string{"pg_stat_statements"}, "shared_preload_libraries = 'pg_stat_statements'\n"},
		"the owner's":     {map[string]string{"shared_preload_libraries": "auto_explain"}, nil, "shared_preload_libraries = 'auto_explain'\n"},
		"both":            {map[string]string{"Shared_Preload_Libraries": "auto_explain"}, []string{"pg_stat_statements"}, "shared_preload_libraries = 'pg_stat_statements,auto_explain'\n"},
		"one, said twice": {map[string]string{"shared_preload_libraries": "auto_explain, pg_stat_statements"}, []string{"pg_stat_statements"}, "shared_preload_libraries = 'auto_explain,pg_stat_statements'\n"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			boot(t, root, render(t, with(func(c *cloudinit.Config) { c.Parameters, c.Extensions = test.parameters, test.extensions }), nil))
			got := bash(t, `. "$1/etc/dbaas/bootstrap.env"; printf %s "$DBAAS_PARAMETERS"`, root)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
