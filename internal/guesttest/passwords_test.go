package guesttest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wso2/terraform-provider-dbaas/internal/pki"
	"github.com/wso2/terraform-provider-dbaas/internal/scram"
)

// hostilePasswords are fifty that a shell, YAML, SQL, psql, a URI or SASLprep
// would like to change.
func hostilePasswords() []string {
	all := []string{
		`it's "q" \back \\`, `$(touch /pwned)`, "`touch /pwned`", `${HOME} $HOME $$`, `#not a comment`, `a: b`, `- a`, `{a: b}`, `%s %n %25`,
		" leading and trailing ", "tab\tinside", "'; drop table kept; --", `\set x 1`, `:'verifier'`, `:role :"db"`, "END_OF_FILE", `<<'EOF'`, "~!@#$%^&*()_+{}|:<>?",
		"&amp;<>\"'", "C:\\path\\n", "!!", "!important", "|pipe", ">redirect", "&background", ";semicolon", "?a=b&c=d/e@f:g", "null", "12345678", "true---x",
		"\u00e9\u4e2d\U0001f600 unicode", "\u2168\u00aa\ufb01 NFKC changes this", "soft\u00adhyphen", "no\u00a0break\u2003space", "zero\u200bwidth", "\u0627\u0031 bidi refused",
		"e\u0301 combining", "\u212b angstrom", "\u0130stanbul", "\ufeffbom first", "\u0007bell inside", "del\x7finside", strings.Repeat("x", 128), strings.Repeat("é", 64),
	}
	alphabet := []rune(`'"\$` + "`" + `#: (){}[]<>|&;!?*%@/=+-_.,~^aZ09éß中😀` + "\u00ad\u2168\u00a0")
	random := rand.New(rand.NewPCG(1, 2)) // always the same ones
	for len(all) < 50 {
		var b strings.Builder
		for range 8 + random.IntN(20) {
			b.WriteRune(alphabet[random.IntN(len(alphabet))])
		}
		all = append(all, b.String())
	}
	return all
}

func (l *life) passwords(t *testing.T) {
	all := hostilePasswords()
	var statements strings.Builder
	for n, password := range all {
		verifier, err := scram.Verifier(password)
		must(t, err)
		fmt.Fprintf(&statements, "create role p%d login password '%s';\n", n, verifier)
	}
	if out, err := l.client.sql(t.Context(), statements.String()); err != nil {
		t.Fatalf("create roles: %v: %s", err, out)
	}
	for n, password := range all {
		role := fmt.Sprintf("p%d", n)
		l.client.but(client{"user": role, "password": password}).answers(t, "select current_user", role)
	}
	l.client.but(client{"user": "p0", "password": all[1]}).rejected(t, "password authentication failed")
}

// TestPasswordsThroughTerraform makes five instances with other things that are
// seldom. The passwords of three stand in their Secrets already, two are supplied.
func TestPasswordsThroughTerraform(t *testing.T) {
	l := useLab(t, containerLab, "container")
	for n, test := range []struct {
		password  string
		arguments args
		statement string
		want      string
	}{
		{`it's "q" \back $(touch /pwned) `, args{"instance_class": `"db.t3.small"`}, "select current_setting('max_connections'), current_setting('shared_buffers')", "100|512MB"},
		{"`id` ${HOME} #c: %s " + "\u2168\u00ad\u00a0", args{"instance_class": `"db.t3.medium"`}, "select current_setting('max_connections'), current_setting('shared_buffers')", "150|1GB"},
		{"\u0627\u0031 \U0001f600 é中", args{"port": "6543"}, "show port", "6543"},
		{strings.Repeat("é", 64), args{"static_network": l.static(77)}, "select host(inet_server_addr())", l.address(77)},
		{" :'x' \\set \t'; -- ", args{"db_name": `"_"`, "master_username": `"` + strings.Repeat("u", 63) + `"`}, "select current_user || current_database()", strings.Repeat("u", 63) + "_"},
	} {
		t.Run(fmt.Sprint("password ", n+1), func(t *testing.T) {
			name := fmt.Sprintf("password-%d", n+1)
			i := l.newInstance(t, name, test.arguments)
			supplied := n >= 3
			if supplied {
				i.with(args{"master_password_wo": hcl(test.password), "master_password_wo_version": "1"})
			} else {
				l.credentials(t, name, "dbadmin", test.password)
			}
			i.apply(t)
			c := i.client(t)
			switch {
			case supplied && c["password"] != "":
				t.Error("terraform keeps a password that is write-only")
			case !supplied && c["password"] != test.password:
				t.Error("terraform has another password than the Secret")
			}
			c["password"] = test.password
			c.answers(t, test.statement, test.want)
			if out, there := i.inside(t, name, "ls", "/pwned"); there {
				t.Errorf("something was run: %s", out)
			}
			if n == 3 {
				resolving, _ := i.inside(t, name, "resolvectl", "status")
				if !strings.Contains(resolving, "198.18.0.53") || !strings.Contains(resolving, "a-b.example.test") {
					t.Errorf("name servers and search domains have not arrived: %s", resolving)
				}
			}
		})
	}
}

// credentials makes the Secret that a create continues with.
func (l *lab) credentials(t *testing.T, instance, user, password string) {
	t.Helper()
	authority, err := pki.NewAuthority("DBaaS "+instance, time.Now())
	must(t, err)
	id := uuid.NewString()
	const prefix = "dbaas.opencloud.wso2.com/"
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": map[string]any{
			"name":        "pg-" + instance + "-credentials",
			"labels":      map[string]any{prefix + "instance": instance, "app.kubernetes.io/managed-by": "terraform-provider-dbaas"},
			"annotations": map[string]any{prefix + "instance-id": id, prefix + "owner": uuid.NewString()},
		},
		"stringData": map[string]any{
			"admin_user": user, "admin_password": password, "ca_cert": authority.CertPEM, "ca_key": authority.KeyPEM,
			"instance_id": id, "mac_address": fmt.Sprintf("02:00:00:%s:%s:%s", id[:2], id[2:4], id[4:6]),
		},
	}}
	_, err = l.dynamic.Resource(secrets()).Namespace(namespace).Create(t.Context(), secret, metav1.CreateOptions{})
	must(t, err)
}

// address is a fixed one in the lab's network.
func (l *lab) address(last int) string { return fmt.Sprintf("198.18.%d.%d", l.network, last) }

func (l *lab) static(last int) string {
	return fmt.Sprintf(`{ address = "%s/24", gateway = "%s", nameservers = ["198.18.0.53", "198.18.0.54"], search_domains = ["a-b.example.test", "example.test"] }`,
		l.address(last), l.address(1))
}

// TestRotationKilledAnywhere kills Terraform and the provider at three moments
// of a rotation. One of the Secret's two values logs in at every moment at which
// the machine runs; the next apply finishes, and then only the new one does.
func TestRotationKilledAnywhere(t *testing.T) {
	l := useLab(t, containerLab, "container")
	i := l.newInstance(t, "rotation", nil)
	i.apply(t)
	login := i.client(t)
	login.answers(t, "create table kept (n int); insert into kept values (7); select n from kept", "7")
	held := func(key string) string { return string(l.secret(t, "pg-rotation-credentials", key)) }
	strategy := func() string {
		machine, err := l.dynamic.Resource(machines()).Namespace(namespace).Get(t.Context(), "pg-rotation", metav1.GetOptions{})
		must(t, err)
		found, _, _ := unstructured.NestedString(machine.Object, "spec", "runStrategy")
		return found
	}
	logsIn := func(ctx context.Context) error {
		var last error
		for _, key := range []string{"admin_password", "admin_password_next"} {
			if password := held(key); password != "" {
				if _, last = login.but(client{"password": password}).sql(ctx, "select n from kept"); last == nil {
					return nil
				}
			}
		}
		return last
	}
	stopped := false
	for n, moment := range []func() bool{
		func() bool { return held("admin_password_next") != "" },
		func() bool { stopped = stopped || strategy() == "Halted"; return stopped },
		func() bool { stopped = stopped || strategy() == "Halted"; return stopped && strategy() == "Always" },
	} {
		old := held("admin_password")
		stopped = false
		i.with(args{"password_rotation": fmt.Sprint(n + 1)})
		i.killed(t, moment, "apply", "-auto-approve", "-input=false", "-no-color")
		if strategy() == "Always" {
			until(t, logsIn)
		}
		i.apply(t)
		login = i.client(t)
		if login["password"] == old || login["password"] != held("admin_password") || held("admin_password_next") != "" {
			t.Errorf("rotation %d: the password is the old one, or not the Secret's", n+1)
		}
		login.answers(t, "select n from kept", "7")
		login.but(client{"password": old}).rejected(t, "password authentication failed")
	}
}
