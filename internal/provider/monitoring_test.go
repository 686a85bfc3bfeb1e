package provider

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGrafanaURLLeadsToTheDashboardThatWeGive(t *testing.T) {
	text, err := os.ReadFile("../../examples/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var given struct {
		UID        string
		Templating struct{ List []struct{ Name string } }
		Panels     []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &given); err != nil {
		t.Fatal(err)
	}
	var variables []string
	for _, v := range given.Templating.List {
		variables = append(variables, v.Name)
	}
	if diff := cmp.Diff([]string{"datasource", "namespace", "instance"}, variables); diff != "" || given.UID != dashboard {
		t.Errorf("uid %s, variables\n%s", given.UID, diff)
	}
	for _, panel := range given.Panels {
		for _, target := range panel.Targets {
			if !strings.Contains(target.Expr, `namespace="$namespace", dbaas_instance="$instance"`) {
				t.Errorf("%s is not of one instance", target.Expr)
			}
		}
	}
}

func TestGrafanaURLIsJoinedAndEscaped(t *testing.T) {
	const query = "?var-namespace=tenant-acme&var-instance=orders"
	for base, want := range map[string]string{
		"https://grafana.example.com":           "https://grafana.example.com/d/dbaas-postgresql",
		"https://grafana.example.com/":          "https://grafana.example.com/d/dbaas-postgresql",
		"http://[2001:db8::1]:3000/a/b/":        "http://[2001:db8::1]:3000/a/b/d/dbaas-postgresql",
		"https://h.example.com/http:g:80/x%2Fy": "https://h.example.com/http:g:80/x%2Fy/d/dbaas-postgresql",
	} {
		if got := grafanaURL(base, "tenant-acme", "orders"); got != want+query {
			t.Errorf("%s: %s", base, got)
		}
	}
}
