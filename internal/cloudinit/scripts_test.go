package cloudinit_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bash runs a script with the guest's parts at hand and returns what it prints.
func bash(t *testing.T, script string, arguments ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "bash", append([]string{"-uc", script, "bash"}, arguments...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func TestReportsAreOneLine(t *testing.T) {
	got := bash(t, `. guest/report.sh; step=disk; say failed "$1" | head -n 5`, "a \"quoted\"\nreason\r\twith \x1b[31mcolour")
	if diff := cmp.Diff("dbaas: step=disk state=failed reason=\"a 'quoted' reason  with [31mcolour\"\n", got); diff != "" {
		t.Error(diff)
	}
}

func TestWordsAreTheReason(t *testing.T) {
	log := `2026-11-30 14:00:00.000 UTC [1] LOG:  starting PostgreSQL 15.9 on x86_64
2026-11-30 14:00:00.000 UTC [1] LOG:  listening on IPv4 address "0.0.0.0", port 5432
2026-11-30 14:00:00.000 UTC [1] LOG:  invalid IP mask "x" in file "/etc/postgresql/15/main/pg_hba.conf"
2026-11-30 14:00:00.000 UTC [1] FATAL:  could not load pg_hba.conf
`
	got := bash(t, `. guest/configuration.sh; printf %s "$1" | words`, log)
	if diff := cmp.Diff("invalid IP mask \"x\" in file \"/etc/postgresql/15/main/pg_hba.conf\"\n", got); diff != "" {
		t.Error(diff)
	}
}

func TestScriptsAreClean(t *testing.T) {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Skip("shellcheck is not installed: apt-get install shellcheck, then go test -run TestScriptsAreClean ./internal/cloudinit")
	}
	scripts, err := filepath.Glob("guest/*.sh")
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	if out, err := exec.CommandContext(t.Context(), "shellcheck", append([]string{"-x"}, scripts...)...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
