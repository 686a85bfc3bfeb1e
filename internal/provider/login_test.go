package provider

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

func TestLoginIsEncodedForEachClient(t *testing.T) {
	hostile := login{
		Connection: instance.Connection{Host: "2001:db8::2", Port: 5433, DBName: "o/r?d", User: "a@b"},
		password:   "p:a/s?s#w@o+r d%\\'é",
	}
	got := map[string]string{"uri": hostile.uri(), "jdbc": hostile.jdbc(), "pgpass": hostile.pgpass()}
	want := map[string]string{
		"uri":    "postgresql://a%40b:p%3Aa%2Fs%3Fs%23w%40o%2Br%20d%25%5C%27%C3%A9@[2001:db8::2]:5433/o%2Fr%3Fd?sslmode=verify-full",
		"jdbc":   "jdbc:postgresql://[2001:db8::2]:5433/o%2Fr%3Fd?ssl=true&sslmode=verify-full&user=a%40b&password=p%3Aa%2Fs%3Fs%23w%40o%2Br%20d%25%5C%27%C3%A9",
		"pgpass": `2001\:db8\:\:2:5433:o/r?d:a@b:p\:a/s?s#w@o+r d%\\'é`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	parsed, err := url.Parse(hostile.uri())
	if err != nil {
		t.Fatal(err)
	}
	password, _ := parsed.User.Password()
	if diff := cmp.Diff([]string{"a@b", hostile.password, "/o/r?d"}, []string{parsed.User.Username(), password, parsed.Path}); diff != "" {
		t.Error(diff)
	}
}

func TestLoginWithoutAPassword(t *testing.T) {
	plain := login{Connection: instance.Connection{Host: "10.50.0.42", Port: 5432, DBName: "orders", User: "dbadmin"}}
	if got, want := plain.uri(), plain.URI(); got != want {
		t.Errorf("%s, want the instance's own %s", got, want)
	}
	plain.User = ""
	if got, want := plain.jdbc(), plain.JDBC(); got != want {
		t.Errorf("%s, want the instance's own %s", got, want)
	}
}
