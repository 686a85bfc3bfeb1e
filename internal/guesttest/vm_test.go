package guesttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
)

// vmLab names the folder of a lab whose guests are virtual machines.
const vmLab = "DBAAS_VM_LAB_DIR"

// TestVMLife is what a container cannot show: a kernel, udev and a page cache of
// the machine's own.
func TestVMLife(t *testing.T) {
	l := useLab(t, vmLab, "vm")
	// A low port needs the kernel's leave, which no container can give.
	i := l.newInstance(t, "vm", args{"port": "443"})
	i.apply(t)
	i.unchanged(t)
	c := i.client(t)
	c.answers(t, "create table kept (i int); insert into kept values (1); select ssl, version from pg_stat_ssl where pid = pg_backend_pid()", "t|TLSv1.3")
	if out, ok := i.insideVM(t, "vm", "cloud-init", "schema", "--system"); !ok {
		t.Errorf("cloud-init schema: %s", out)
	}
	i.patch(t, claims(), "pg-vm-data", storage("2Gi"))
	i.says(t, "vm", "step=grow state=ok", "2048 MiB")
	until(t, func(context.Context) error {
		var mib int
		size, _ := i.insideVM(t, "vm", "df", "--output=size", "-BM", "/var/lib/postgresql")
		if _, err := fmt.Sscanf(size, "1M-blocks\n%dM", &mib); err != nil || mib < 1900 {
			return fmt.Errorf("df says %q", size)
		}
		return nil
	})
	c.answers(t, "select count(*) from kept", "1")
	before, err := c.sql(t.Context(), "select pg_postmaster_start_time()")
	must(t, err)
	l.tool(t, "reboot", namespace+"/pg-vm")
	c.soon(t, fmt.Sprintf("select pg_postmaster_start_time() > '%s', count(*) from kept", before), "t|1")
	l.ready(t, "vm")
}

func storage(size string) map[string]any {
	return map[string]any{"spec": map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": size}}}}
}

// kills says how many power cuts there are of each kind, from which on, and by
// which seed their moments are drawn: a run that was interrupted goes on with
// the same seed and the number that it printed last.
type kills struct {
	count, first int
	seed         uint64
}

func readKills(t *testing.T) kills {
	t.Helper()
	number := func(name string, otherwise int) int {
		text := os.Getenv(name)
		if text == "" {
			return otherwise
		}
		n, err := strconv.Atoi(text)
		must(t, err)
		return n
	}
	k := kills{count: number("DBAAS_KILLS", 20), first: number("DBAAS_KILLS_FIRST", 1), seed: uint64(number("DBAAS_KILLS_SEED", int(rand.Int32())))}
	t.Logf("to repeat: DBAAS_KILLS_SEED=%d DBAAS_KILLS=%d DBAAS_KILLS_FIRST=%d", k.seed, k.count, k.first)
	return k
}

// moment is when power cut n comes, of a boot that lasts so long.
func (k kills) moment(n int, boot time.Duration) time.Duration {
	return time.Duration(rand.New(rand.NewPCG(k.seed, uint64(n))).Int64N(int64(boot)))
}

// TestVMFirstBootIsCut pulls the plug at random moments of first boots: the next
// boot makes the database that an uncut one makes.
func TestVMFirstBootIsCut(t *testing.T) {
	l := useLab(t, vmLab, "vm")
	k := readKills(t)
	i := l.newInstance(t, "uncut", nil)
	i.apply(t)
	boot := l.bootTook(t, "uncut")
	want := database(t, i.client(t))
	i.destroy(t)
	for n := k.first; n < k.first+k.count; n++ {
		t.Run(fmt.Sprint("cut ", n), func(t *testing.T) {
			name := fmt.Sprintf("cut-%d", n)
			i := l.newInstance(t, name, args{"timeouts": `{ create = "60m" }`})
			applied := make(chan error, 1)
			go func() {
				out, err := i.terraform(t.Context(), "apply", "-auto-approve", "-input=false", "-no-color")
				if err != nil {
					err = fmt.Errorf("terraform apply: %w\n%s", err, out)
				}
				applied <- err
			}()
			l.cutAfter(t, name, k.moment(n, boot))
			if err := <-applied; err != nil {
				t.Fatal(err)
			}
			if got := database(t, i.client(t)); got != want {
				t.Errorf("the database is %s, want %s", got, want)
			}
		})
	}
}

// TestVMResizeBootIsCut pulls the plug while a boot grows the file system.
func TestVMResizeBootIsCut(t *testing.T) {
	l := useLab(t, vmLab, "vm")
	k := readKills(t)
	i := l.newInstance(t, "resized", nil)
	i.apply(t)
	boot := l.bootTook(t, "resized")
	c := i.client(t)
	c.answers(t, "create table kept as select n, md5(n::text) as hash from generate_series(1, 20000) n; create index on kept (hash); checkpoint", "")
	want := database(t, c)
	for n := k.first; n < k.first+k.count; n++ {
		t.Run(fmt.Sprint("cut ", n), func(t *testing.T) {
			gib := int64(n + 1)
			i.document(t, func(c *cloudinit.Config) { c.DataGiB = gib })
			l.restart(t, "resized", func() { i.patch(t, claims(), "pg-resized-data", storage(fmt.Sprintf("%dGi", gib))) })
			l.cutAfter(t, "resized", k.moment(n, boot))
			l.ready(t, "resized")
			c.soon(t, "select count(*), count(distinct hash) from kept", "20000|20000")
			if got := database(t, c); got != want {
				t.Errorf("the database is %s, want %s", got, want)
			}
			l.says(t, "resized", fmt.Sprintf("%d MiB", gib*1024))
		})
	}
}

// database describes what a boot makes, so that two can be compared.
func database(t *testing.T, c client) string {
	t.Helper()
	name := c["dbname"]
	out, err := c.sql(t.Context(), `select pg_encoding_to_char(encoding), datcollate, pg_get_userbyid(datdba) from pg_database where datname = current_database();
		select rolsuper, rolcreatedb, rolcreaterole from pg_roles where rolname = current_user;
		select string_agg(datname, ' ' order by datname) from pg_database;
		select string_agg(rolname, ' ' order by rolname) from pg_roles where rolname !~ '^pg_';
		select current_setting('data_checksums'), current_setting('max_connections'), current_setting('ssl')`)
	must(t, err)
	return strings.ReplaceAll(strings.ReplaceAll(out, name, "DATABASE"), "\n", " / ")
}

// bootTook is how long the machine that runs needed from its start to ready.
func (l *lab) bootTook(t *testing.T, name string) time.Duration {
	t.Helper()
	vmi, err := l.vmi(t.Context(), name)
	must(t, err)
	var began, ended time.Time
	for _, field := range []struct {
		list, key, value, at string
		to                   *time.Time
	}{
		{"phaseTransitionTimestamps", "phase", "Running", "phaseTransitionTimestamp", &began},
		{"conditions", "type", "Ready", "lastTransitionTime", &ended},
	} {
		status := vmi.Object["status"].(map[string]any)
		for _, item := range status[field.list].([]any) {
			if item := item.(map[string]any); item[field.key] == field.value {
				at, err := time.Parse(time.RFC3339, item[field.at].(string))
				must(t, err)
				*field.to = at
			}
		}
	}
	if !ended.After(began) {
		t.Fatalf("the machine ran at %s and was ready at %s", began, ended)
	}
	return ended.Sub(began)
}

// cutAfter pulls the plug of a machine so long after its start.
func (l *lab) cutAfter(t *testing.T, name string, delay time.Duration) {
	t.Helper()
	until(t, func(ctx context.Context) error {
		vmi, err := l.vmi(ctx, name)
		if err != nil || vmi == nil {
			return errors.Join(err, errors.New("no machine runs"))
		}
		if phase := vmi.Object["status"].(map[string]any)["phase"]; phase != "Running" {
			return fmt.Errorf("the machine is %v", phase)
		}
		return nil
	})
	<-time.After(delay)
	vmi, err := l.vmi(t.Context(), name)
	must(t, err)
	t.Logf("cut after %s; the guest's last word: %s", delay.Round(time.Second/10), lastWord(l.console(vmi)))
	l.tool(t, "cut", namespace+"/pg-"+name)
	until(t, func(ctx context.Context) error {
		next, err := l.vmi(ctx, name)
		if err == nil && (next == nil || next.GetUID() == vmi.GetUID()) {
			err = errors.New("the machine has not been started again")
		}
		return err
	})
}
