package acceptance

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUntaintedInstanceIsResumed(t *testing.T) {
	l := useLab(t)
	l.knob(namespace+".pg-resumed.never-ready", "true")
	t.Cleanup(func() { l.knob(namespace+".pg-resumed.never-ready", "") })
	c := newCLI(t, l.module("resumed", args{"timeouts": `{ create = "30s" }`}))
	code, out := c.run("apply", "-auto-approve", "-input=false", "-no-color")
	if code != 1 || !regexp.MustCompile(`(?s)not\s+available\s+in\s+time.*terraform\s+untaint`).MatchString(out) {
		t.Fatalf("the apply that cannot succeed exits with %d:\n%s", code, out)
	}
	secret, before := l.credentials("resumed").Data, l.uids("resumed")
	if len(before) != 6 {
		t.Fatalf("stands: %v; want VM, VMI, two claims and two Secrets", before)
	}
	left := c.attributes(it)
	if left["(tainted)"] != true {
		t.Error("the instance is not tainted")
	}

	l.knob(namespace+".pg-resumed.never-ready", "")
	c.must("untaint", it)
	l.reset()
	out = c.must("apply", "-auto-approve", "-input=false", "-no-color")
	if !strings.Contains(out, "0 added, 1 changed, 0 destroyed") {
		t.Errorf("the instance was not just changed:\n%s", out)
	}
	if diff := cmp.Diff(before, l.uids("resumed")); diff != "" {
		t.Errorf("these are other objects:\n%s", diff)
	}
	got := c.attributes(it)
	for attribute, want := range map[string]any{
		"status": "available", "ca_cert_pem": string(secret["ca_cert"]), "master_password": string(secret["admin_password"]),
		"instance_id": left["instance_id"], "owner_id": left["owner_id"], "(tainted)": false,
	} {
		if got[attribute] != want {
			t.Errorf("%s is not what it was, or should be", attribute)
		}
	}
	after := l.credentials("resumed").Data
	for _, key := range []string{"admin_user", "admin_password", "ca_cert", "instance_id", "mac_address"} {
		if string(after[key]) != string(secret[key]) {
			t.Errorf("the Secret's %s is another one", key)
		}
	}
	if after["ca_key"] != nil {
		t.Error("the CA's key is still in the Secret")
	}
	if posts := l.requests("", "POST", "DELETE"); len(posts) > 0 {
		t.Errorf("sent: %v", posts)
	}
	if code, out := c.run("plan", "-detailed-exitcode", "-input=false", "-no-color"); code != 0 {
		t.Errorf("a second plan exits with %d:\n%s", code, out)
	}
	c.must("destroy", "-auto-approve", "-input=false", "-no-color")
	must(t, l.nothingLeft("resumed")(nil))
}

// module is a root module that says where the provider comes from.
func (l *lab) module(name string, arguments args) string {
	return "terraform {\n  required_providers {\n    dbaas = {\n      source = \"wso2/dbaas\"\n    }\n  }\n}\n\n" + l.config(name, maps.Clone(arguments))
}
