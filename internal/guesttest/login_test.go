package guesttest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A client is how somebody logs in: libpq's parameters.
type client map[string]string

// client is one with nothing but what terraform knows: address, CA, names and
// password, and the strictest check of the server.
func (i *instance) client(t *testing.T) client {
	t.Helper()
	all := i.attributes(t)
	password, _ := all["master_password"].(string) // null when Terraform does not know it
	ca := filepath.Join(i.folder, "ca.pem")
	must(t, os.WriteFile(ca, []byte(all["ca_cert_pem"].(string)), 0o600))
	return client{
		"host": all["address"].(string), "port": fmt.Sprint(all["port"]), "dbname": all["db_name"].(string),
		"user": all["master_username"].(string), "password": password,
		"sslmode": "verify-full", "sslrootcert": ca, "connect_timeout": "5",
	}
}

// but returns a client that differs.
func (c client) but(changes client) client {
	all := maps.Clone(c)
	maps.Copy(all, changes)
	return all
}

// sql logs in with psql and returns what it prints. The password goes by the
// environment.
func (c client) sql(ctx context.Context, statements string) (string, error) {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if name != "password" {
			value := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(c[name])
			words = append(words, fmt.Sprintf("%s='%s'", name, value))
		}
	}
	cmd := exec.CommandContext(ctx, "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-f", "-", strings.Join(words, " "))
	cmd.Env = append(os.Environ(), "PGPASSWORD="+c["password"], "PGCLIENTENCODING=UTF8")
	cmd.Stdin = strings.NewReader(statements)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return strings.TrimSpace(string(out)), nil
}

// answers wants a statement to have this result.
func (c client) answers(t *testing.T, statement, want string) {
	t.Helper()
	got, err := c.sql(t.Context(), statement)
	if err != nil || got != want {
		t.Errorf("%s\ngot  %q, %v\nwant %q", statement, got, err, want)
	}
}

// soon is answers for what comes by itself after some time.
func (c client) soon(t *testing.T, statement, want string) {
	t.Helper()
	until(t, func(ctx context.Context) error {
		got, err := c.sql(ctx, statement)
		if err == nil && got != want {
			err = fmt.Errorf("%s: got %q, want %q", statement, got, want)
		}
		return err
	})
}

// rejected wants a login to fail, for this reason.
func (c client) rejected(t *testing.T, reason string) {
	t.Helper()
	got, err := c.sql(t.Context(), "select 'logged in'")
	if err == nil || !strings.Contains(err.Error(), reason) {
		t.Errorf("got %q, %v, want a failure that says %q", got, err, reason)
	}
}
