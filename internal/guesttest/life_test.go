package guesttest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
	"github.com/wso2/terraform-provider-dbaas/internal/pki"
)

// containerLab names the folder of a lab whose image has PostgreSQL baked in.
const containerLab = "DBAAS_GUEST_LAB_DIR"

// prefix is a setting that would do harm if anything on its way took it for
// something else than a text.
const prefix = "%m it's \"q\" \\back $(touch /pwned) `touch /pwned` ${HOME} #c: é中\U0001F600 "

// TestLife is one instance's: each chapter needs the ones before it.
func TestLife(t *testing.T) {
	l := useLab(t, containerLab, "container")
	key := filepath.Join(t.TempDir(), "key")
	if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("make an SSH key: %v: %s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	must(t, err)
	i := l.newInstance(t, "life", args{
		"db_name": `"select"`, "master_username": `"user"`, "dns_names": `["db.example.test", "*.wild.example.test"]`,
		"allowed_cidrs": `["198.18.0.0/15"]`, "extensions": `["pg_stat_statements", "uuid-ossp"]`,
		"parameters":      fmt.Sprintf("{ work_mem = \"7MB\", log_line_prefix = %s, log_connections = \"on\", log_statement = \"all\" }", hcl(prefix)),
		"ssh_public_keys": fmt.Sprintf("[%s]", hcl(strings.TrimSpace(string(public)))),
	})
	i.apply(t)
	life := &life{instance: i, client: i.client(t)}
	for _, chapter := range []struct {
		name string
		tell func(*testing.T)
	}{
		{"the image needs no packages", func(t *testing.T) { i.says(t, "life", "PostgreSQL 15 is in the image") }},
		{"the document is what cloud-init's schema wants", life.documentIsValid},
		{"SQL over TLS finds what was asked for", life.facts},
		{"the server is the one that the CA vouches for, and nobody else gets in", life.trust},
		{"no secret is left", func(t *testing.T) { life.noSecrets(t, true) }},
		{"any password works", life.passwords},
		{"a key logs in", func(t *testing.T) { life.sshLogin(t, key) }},
		{"a plan after all this is empty", func(t *testing.T) { i.unchanged(t) }},
		{"rows survive a reboot", life.reboot},
		{"rows survive a power cut", life.cut},
		{"a new address gets a certificate", life.moves},
		{"rows survive a stop and a start", life.stopsAndStarts},
		{"no secret is left after a stop and a start", func(t *testing.T) { life.noSecrets(t, false) }},
		{"changes are applied, with the same instance-id", life.changes},
		{"metrics are read by whom they are for", life.readers},
		{"settings that PostgreSQL refuses leave the old ones", life.refusals},
		{"what PostgreSQL refuses when it starts leaves the old ones", life.startRefused},
		{"the volume grows", life.grows},
		{"a new root disk takes the kept data disk", life.newRoot},
		{"a missing disk is not replaced by the root disk", life.missingDisk},
		{"a blank claim is not formatted", life.blankClaim},
	} {
		if !t.Run(chapter.name, chapter.tell) {
			t.FailNow()
		}
	}
}

type life struct {
	*instance
	client client
	rows   int
}

// remember adds a row that has to be there from now on.
func (l *life) remember(t *testing.T) {
	t.Helper()
	l.rows++
	l.client.answers(t, "set default_transaction_read_only = off; set client_min_messages = warning; create table if not exists kept (at timestamptz default now()); insert into kept default values; select count(*) from kept", fmt.Sprint(l.rows))
}

// remembers waits until the rows can be read, by the same password, CA and name.
func (l *life) remembers(t *testing.T) {
	t.Helper()
	if l.rows == 0 {
		l.remember(t)
	}
	l.client.soon(t, "select count(*) from kept", fmt.Sprint(l.rows))
}

// settings are those that an instance's arguments decide.
func (l *life) settings(t *testing.T) string {
	t.Helper()
	got, err := l.client.sql(t.Context(), "select current_setting('max_connections'), current_setting('shared_buffers'), current_setting('work_mem'), current_setting('log_line_prefix')")
	must(t, err)
	return got
}

func (l *life) facts(t *testing.T) {
	for statement, want := range map[string]string{
		"select current_setting('server_version_num')::int / 10000":                                                                               "15",
		"select ssl, version from pg_stat_ssl where pid = pg_backend_pid()":                                                                       "t|TLSv1.3",
		"select current_setting('max_connections'), current_setting('shared_buffers'), current_setting('work_mem')":                               "50|256MB|7MB",
		"select pg_encoding_to_char(encoding), datcollate, datctype, pg_get_userbyid(datdba) from pg_database where datname = current_database()": "UTF8|C.UTF-8|C.UTF-8|user",
		"select current_setting('data_checksums'), current_setting('password_encryption'), current_setting('port')":                               "on|scram-sha-256|5432",
		"select rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls from pg_roles where rolname = current_user":                    "f|t|t|f|f",
		"select current_database(), current_user":                                                                                                 "select|user",
		"select string_agg(extname, ' ' order by extname) from pg_extension where extname <> 'plpgsql'":                                           "pg_stat_statements uuid-ossp",
		"select count(*) > 0 from pg_stat_statements":                                                                                             "t",
		"show log_line_prefix": strings.TrimSpace(prefix),
	} {
		l.client.answers(t, statement, want)
	}
	if out, there := l.inside(t, l.name, "ls", "/pwned"); there {
		t.Errorf("a parameter was run as a command: %s", out)
	}
	failed, _ := l.inside(t, l.name, "systemctl", "--failed", "--no-legend", "--plain")
	if strings.Contains(failed, "dbaas") || strings.Contains(failed, "cloud") || strings.Contains(failed, "postgres") {
		t.Errorf("failed units: %s", failed)
	}
	for path, want := range map[string]string{
		"/var/lib/postgresql/.dbaas": "700 root", "/var/lib/postgresql/.dbaas/ca.key": "600 root", "/var/lib/postgresql/15/main": "700 postgres",
		"/var/lib/postgresql/tls/server.key": "640 root", "/var/lib/postgresql": "755 root",
	} {
		if got, _ := l.inside(t, l.name, "stat", "-c", "%a %U", path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	held, _ := l.inside(t, l.name, "apt-config", "dump", "Unattended-Upgrade::Package-Blacklist")
	if !strings.Contains(held, `"postgresql"`) {
		t.Errorf("unattended-upgrades is not told to leave PostgreSQL alone: %s", held)
	}
}

func (l *life) trust(t *testing.T) {
	c := l.client
	for _, name := range []string{"db.example.test", "any.wild.example.test", "pg-life"} {
		c.but(client{"host": name, "hostaddr": c["host"]}).answers(t, "select 1", "1")
	}
	other, err := pki.NewAuthority("another CA", time.Now())
	must(t, err)
	file := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(file, []byte(other.CertPEM), 0o600))
	c.but(client{"sslrootcert": file}).rejected(t, "certificate verify failed")
	c.but(client{"host": "other.example.test", "hostaddr": c["host"]}).rejected(t, "does not match host name")
	c.but(client{"sslmode": "disable"}).rejected(t, "no encryption")
	c.but(client{"password": "wrong" + c["password"]}).rejected(t, "password authentication failed")
	c.but(client{"user": "postgres"}).rejected(t, "password authentication failed")
}

func (l *life) sshLogin(t *testing.T, key string) {
	out, err := exec.CommandContext(t.Context(), "ssh", "-i", key, "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
		"-o", "LogLevel=ERROR", "-o", "ConnectTimeout=20", "-F", "none", "dbaas@"+l.client["host"], "sudo", "id", "-un").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "root" {
		t.Errorf("ssh: %v: %s", err, out)
	}
}

// started is when this PostgreSQL was started.
func (l *life) started(t *testing.T) string {
	t.Helper()
	at, err := l.client.sql(t.Context(), "select pg_postmaster_start_time()")
	must(t, err)
	return at
}

// startsAgain waits for another PostgreSQL than the one that was started then.
func (l *life) startsAgain(t *testing.T, before string) {
	t.Helper()
	l.client.soon(t, fmt.Sprintf("select pg_postmaster_start_time() > '%s'", before), "t")
}

func (l *life) reboot(t *testing.T) {
	l.remember(t)
	before := l.started(t)
	l.tool(t, "reboot", namespace+"/pg-life")
	l.startsAgain(t, before)
	l.remembers(t)
	l.ready(t, l.name)
}

func (l *life) cut(t *testing.T) {
	l.remember(t)
	before := l.started(t)
	l.tool(t, "cut", namespace+"/pg-life")
	l.startsAgain(t, before)
	l.remembers(t)
	l.ready(t, l.name)
}

func (l *life) moves(t *testing.T) {
	address := net.ParseIP(l.client["host"]).To4()
	address[3] = 250
	l.tool(t, "address", namespace+"/pg-life", address.String())
	l.client = l.client.but(client{"host": address.String()})
	l.remembers(t)
	until(t, func(context.Context) error {
		if got := l.refreshed(t)["address"]; got != address.String() {
			return fmt.Errorf("terraform says the address is %v", got)
		}
		return nil
	})
	l.unchanged(t)
}

// refreshed are the attributes after terraform has looked at the cluster.
func (l *life) refreshed(t *testing.T) map[string]any {
	t.Helper()
	if out, err := l.terraform(t.Context(), "apply", "-refresh-only", "-auto-approve", "-input=false", "-no-color"); err != nil {
		t.Fatalf("terraform apply -refresh-only: %v\n%s", err, out)
	}
	return l.attributes(t)
}

func (l *life) stopsAndStarts(t *testing.T) {
	l.remember(t)
	l.with(args{"running": "false"}).apply(t)
	l.off(t, l.name)
	l.with(args{"running": "true"}).apply(t)
	l.remembers(t)
}

// changes are made with one apply, and arrive with one restart. A password that
// was set by SQL stays.
func (l *life) changes(t *testing.T) {
	const password = "set by SQL, later"
	l.client.answers(t, fmt.Sprintf(`alter role "user" password '%s'`, password), "")
	l.client = l.client.but(client{"password": password})
	l.with(args{
		"instance_class": `"db.t3.small"`, "parameters": `{ work_mem = "9MB", statement_timeout = "1h", default_transaction_read_only = "on" }`,
		"extensions": `["pg_stat_statements", "uuid-ossp", "pg_trgm"]`, "allowed_cidrs": "", "dns_names": `["other.example.test"]`, "ssh_public_keys": "",
	}).apply(t)
	l.remembers(t)
	l.client.answers(t, "select current_setting('max_connections'), current_setting('shared_buffers'), current_setting('work_mem'), current_setting('default_transaction_read_only')", "100|512MB|9MB|on")
	l.client.answers(t, "select count(*) from pg_extension where extname = 'pg_trgm'", "1")
	l.client.but(client{"host": "other.example.test", "hostaddr": l.client["host"]}).answers(t, "select 1", "1")
	l.client.but(client{"host": "db.example.test", "hostaddr": l.client["host"]}).rejected(t, "does not match host name")
	if keys, there := l.inside(t, l.name, "cat", "/home/dbaas/.ssh/authorized_keys"); there {
		t.Errorf("the key was not taken away: %s", keys)
	}
	l.unchanged(t)
}

// readers: who may log in and who may read metrics are different networks.
func (l *life) readers(t *testing.T) {
	l.document(t, func(c *cloudinit.Config) {
		c.AllowedCIDRs = []string{"10.0.0.0/8"}
		c.Monitoring = &cloudinit.Monitoring{AllowedCIDRs: []string{"198.18.0.0/15"}}
	})
	l.restart(t, l.name)
	l.ready(t, l.name)
	until(t, l.client.metrics)
	l.client.rejected(t, "no pg_hba.conf entry")
	l.document(t, func(c *cloudinit.Config) { c.AllowedCIDRs, c.Monitoring = nil, nil })
	l.restart(t, l.name)
	l.ready(t, l.name)
	if err := l.client.metrics(t.Context()); err == nil {
		t.Error("the exporter answers although nobody wants it any more")
	}
}

// refusals: the apply fails with PostgreSQL's line, the database serves on with
// the settings of before, and the next apply with those succeeds.
func (l *life) refusals(t *testing.T) {
	good := l.arguments["parameters"]
	before := l.settings(t)
	l.with(args{"parameters": `{ work_mem = "banana" }`}).refused(t, "invalid value for parameter 'work_mem': 'banana'")
	l.remembers(t)
	if got := l.settings(t); got != before {
		t.Errorf("PostgreSQL serves with %s, before it was %s", got, before)
	}
	l.with(args{"parameters": good}).apply(t)
	l.unchanged(t)
	l.remembers(t)
}

// startRefused: what shows only when PostgreSQL starts, and what SQL refuses.
func (l *life) startRefused(t *testing.T) {
	var good map[string]string
	var extensions []string
	before := l.settings(t)
	l.document(t, func(c *cloudinit.Config) {
		extensions = slices.Clone(c.Extensions)
		good, c.Parameters = c.Parameters, map[string]string{"wal_level": "minimal"}
	})
	l.restart(t, l.name)
	l.says(t, l.name, "step=configure state=refused", "WAL streaming (max_wal_senders > 0) requires wal_level", "state=restored", "step=converge state=failed")
	l.remembers(t)
	if got := l.settings(t); got != before {
		t.Errorf("PostgreSQL serves with %s, before it was %s", got, before)
	}
	if verdict, ready := l.inside(t, l.name, "/usr/local/sbin/dbaas-ready"); ready {
		t.Errorf("the guest is ready: %s", verdict)
	}
	l.document(t, func(c *cloudinit.Config) {
		c.Parameters, c.Extensions = good, append(c.Extensions, "no_such_extension")
	})
	l.restart(t, l.name)
	l.says(t, l.name, "step=objects state=failed", "extension no_such_extension: ERROR:")
	l.remembers(t)
	// The document keeps them sorted.
	l.document(t, func(c *cloudinit.Config) { c.Extensions = extensions })
	l.restart(t, l.name)
	l.ready(t, l.name)
}

// grows: in a container the file system may not grow online; then the provider
// restarts the machine, which grows it.
func (l *life) grows(t *testing.T) {
	l.with(args{"allocated_storage": "2"}).apply(t)
	l.remembers(t)
	size, _ := l.inside(t, l.name, "df", "--output=size", "-BM", "/var/lib/postgresql")
	var mib int
	if _, err := fmt.Sscanf(size, "1M-blocks\n%dM", &mib); err != nil || mib < 1900 {
		t.Errorf("df says %q", size)
	}
	l.unchanged(t)
}

func (l *life) newRoot(t *testing.T) {
	before := l.settings(t)
	if out, ok := l.inside(t, l.name, "touch", "/old-root"); !ok {
		t.Fatal(out)
	}
	l.switchTo(t, l.name, "Halted")
	l.off(t, l.name)
	gone := func(kind string) func(context.Context) error {
		return func(ctx context.Context) error {
			resource, name := machines(), "pg-life"
			if kind == "claim" {
				resource, name = claims(), "pg-life-os"
			}
			object, err := l.get(ctx, resource, name)
			if err == nil && object != nil {
				err = fmt.Errorf("%s %s is still there", kind, name)
			}
			return err
		}
	}
	must(t, l.dynamic.Resource(machines()).Namespace(namespace).Delete(t.Context(), "pg-life", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}))
	until(t, gone("machine"))
	must(t, l.dynamic.Resource(claims()).Namespace(namespace).Delete(t.Context(), "pg-life-os", metav1.DeleteOptions{}))
	until(t, gone("claim"))
	l.apply(t)
	l.remembers(t)
	if out, there := l.inside(t, l.name, "ls", "/old-root"); there {
		t.Errorf("the root disk is the old one: %s", out)
	}
	if got := l.settings(t); got != before {
		t.Errorf("PostgreSQL serves with %s, before it was %s", got, before)
	}
	l.client.but(client{"host": "pg-life", "hostaddr": l.client["host"]}).answers(t, "select 1", "1")
}

func (l *life) missingDisk(t *testing.T) {
	vm, err := l.get(t.Context(), machines(), "pg-life")
	must(t, err)
	template := []string{"spec", "template", "spec"}
	disks, _, err := unstructured.NestedSlice(vm.Object, append(template, "domain", "devices", "disks")...)
	must(t, err)
	volumes, _, err := unstructured.NestedSlice(vm.Object, append(template, "volumes")...)
	must(t, err)
	set := func(disks, volumes []any) {
		l.patch(t, machines(), "pg-life", map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"volumes": volumes, "domain": map[string]any{"devices": map[string]any{"disks": disks}},
		}}}})
	}
	l.restart(t, l.name, func() { set(without(disks, "pgdata-disk"), without(volumes, "pgdata-disk")) })
	l.says(t, l.name, "step=disk state=failed", "no disk with serial pgdata; the root disk is never used instead")
	if out, mounted := l.inside(t, l.name, "mountpoint", "/var/lib/postgresql"); mounted {
		t.Errorf("something is mounted: %s", out)
	}
	if out, _ := l.inside(t, l.name, "find", "/var/lib/postgresql", "-name", "PG_VERSION"); out != "" {
		t.Errorf("there is a database on the root disk: %s", out)
	}
	l.restart(t, l.name, func() { set(disks, volumes) })
	l.remembers(t)
	l.ready(t, l.name)
}

func without(list []any, name string) []any {
	var kept []any
	for _, item := range list {
		if item.(map[string]any)["name"] != name {
			kept = append(kept, item)
		}
	}
	return kept
}

func (l *life) blankClaim(t *testing.T) {
	l.restart(t, l.name, func() { l.tool(t, "replace-claim", namespace+"/pg-life-data") })
	l.says(t, l.name, "step=disk state=failed", "the data disk is blank but this database has been bootstrapped before; nothing formatted")
	if out, found := l.inside(t, l.name, "blkid", "-p", "/dev/disk/by-id/virtio-pgdata"); found || out != "" {
		t.Errorf("the disk is not blank any more: %s", out)
	}
	all := l.refreshed(t)
	want := map[string]any{"status": "failed", "status_reason": "DataVolumeReplaced"}
	if diff := cmp.Diff(want, map[string]any{"status": all["status"], "status_reason": all["status_reason"]}); diff != "" {
		t.Error(diff)
	}
}
