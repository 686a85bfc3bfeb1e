package acceptance

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/wso2/terraform-provider-dbaas/internal/provider"
)

func pathOf(name string) path.Path { return path.Root(name) }

// fragment is one block of Terraform's language in a page of docs/.
type fragment struct{ name, text string }

// fragments are those of every page there is.
func fragments(t *testing.T) []fragment {
	t.Helper()
	var all []fragment
	must(t, filepath.WalkDir("../../docs", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for i, block := range slices.Concat(blocks(string(text), "terraform"), blocks(string(text), "hcl")) {
			all = append(all, fragment{fmt.Sprintf("%s %d", strings.TrimPrefix(file, "../../docs/"), i+1), block})
		}
		return nil
	}))
	return all
}

func (f fragment) has(pattern string) bool {
	return regexp.MustCompile(`(?m)` + pattern).MatchString(f.text)
}

// Every block of every page is applied on the lab as it is, but for the lab's
// values. What it leaves to the reader is put beside: the instance that it
// refers to, variables, and stand-ins for the providers that it is composed
// with. Blocks with the same instance have one state; each other has its own.
func TestEveryBlockOfThePagesWorks(t *testing.T) {
	l := useLab(t)
	all := fragments(t)
	if len(all) < 20 {
		t.Fatalf("docs/ has %d blocks", len(all))
	}
	shared := l.reader(t)
	for _, f := range all {
		switch {
		case f.has(`^action `):
			// Terraform 1.14; TestRestartAction runs it through the protocol.
			t.Run(f.name, func(t *testing.T) { checkAction(t, f) })
		case f.ownInstance(t):
			t.Run(f.name, func(t *testing.T) {
				name := "page-" + regexp.MustCompile(`[^a-z]+`).ReplaceAllString(strings.ToLower(f.name), "-") + f.name[len(f.name)-1:]
				c := l.reader(t)
				c.apply(t, f, name)
				c.must("destroy", "-auto-approve", "-input=false", "-no-color")
				must(t, l.nothingLeft(name)(nil))
			})
		default:
			t.Run(f.name, func(t *testing.T) {
				shared.t = t
				shared.apply(t, f, "page")
				shared.forgetOthers()
			})
		}
	}
	shared.t = t
	shared.must("destroy", "-auto-approve", "-input=false", "-no-color")
	must(t, l.nothingLeft("page")(nil))
}

// reader is somebody with an empty folder, the dashboard's file in it, and the
// connection in the environment.
func (l *lab) reader(t *testing.T) *cli {
	t.Helper()
	c := &cli{t: t, dir: t.TempDir(), environment: serveWithStandIns(t, l.kubeconfig)}
	dashboard, err := os.ReadFile("../../examples/monitoring/dashboard.json")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(c.dir, "dashboard.json"), dashboard, 0o600))
	return c
}

func (c *cli) apply(t *testing.T, f fragment, name string) {
	t.Helper()
	c.write(f.module(t, name))
	c.must("init", "-input=false", "-no-color")
	c.must("apply", "-auto-approve", "-input=false", "-no-color")
	if code, out := c.run("plan", "-detailed-exitcode", "-input=false", "-no-color"); code != 0 {
		t.Errorf("a second plan: exit code %d\n%s", code, out)
	}
}

// forgetOthers leaves only our instance in the state: the next block does not
// configure the providers of this one.
func (c *cli) forgetOthers() {
	c.t.Helper()
	for line := range strings.Lines(c.must("state", "list")) {
		if resource := strings.TrimSpace(line); !strings.Contains(resource, "dbaas_") {
			c.must("state", "rm", resource)
		}
	}
}

func shortestExample(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../examples/resources/dbaas_instance/resource.tf")
	must(t, err)
	return string(text)
}

// ownInstance says whether the instance is another one than the shortest.
func (f fragment) ownInstance(t *testing.T) bool {
	t.Helper()
	return f.has(`^resource "dbaas_instance"`) && strings.TrimSpace(f.text) != strings.TrimSpace(shortestExample(t)) && !f.has("kubernetes_namespace")
}

// module is a root module of the block.
func (f fragment) module(t *testing.T, name string) string {
	t.Helper()
	shortest := shortestExample(t)
	var b strings.Builder
	if !f.has(`^terraform {`) {
		b.WriteString("terraform {\n  required_providers {\n    dbaas = { source = \"wso2/dbaas\" }\n")
		for _, p := range standIns() {
			if f.has(`(^resource|^ephemeral|^provider) "`+p.name+`[_"]`) || f.has(p.name+"_file") {
				fmt.Fprintf(&b, "    %s = { source = %q }\n", p.name, p.source)
			}
		}
		b.WriteString("  }\n}\n")
	}
	b.WriteString(f.completed(shortest))
	if !f.has(`^resource "dbaas_instance"`) {
		b.WriteString(shortest)
	}
	if f.has(`local_file\.ca`) {
		b.WriteString("resource \"local_file\" \"ca\" {\n  content  = dbaas_instance.orders.ca_cert_pem\n  filename = \"ca.pem\"\n}\n")
	}
	if f.has(`^provider "postgresql"`) {
		b.WriteString("resource \"postgresql_database\" \"app\" {\n  name = \"app\"\n}\n")
	}
	for _, variable := range regexp.MustCompile(`var\.(\w+)`).FindAllStringSubmatch(f.text, -1) {
		fmt.Fprintf(&b, "variable %q {\n  default = \"https://example.com/a value\"\n}\n", variable[1])
	}
	return labValues(name).Replace(b.String())
}

// completed puts the shortest instance's arguments where the page has "# ...".
func (f fragment) completed(shortest string) string {
	return regexp.MustCompile(`(?ms)^resource "dbaas_instance" "orders" \{\n.*?^\}`).ReplaceAllStringFunc(f.text, func(written string) string {
		if !strings.Contains(written, "# ...") {
			return written
		}
		var rest []string
		for _, m := range regexp.MustCompile(`(?m)^  (\w+) += .*$`).FindAllStringSubmatch(shortest, -1) {
			if !regexp.MustCompile(`(?m)^  ` + m[1] + ` +=`).MatchString(written) {
				rest = append(rest, m[0])
			}
		}
		return strings.Replace(written, "  # ...", strings.Join(rest, "\n"), 1)
	})
}

// labValues are what the pages have of a cluster of the reader's.
func labValues(name string) *strings.Replacer {
	return strings.NewReplacer(
		`name              = "orders"`, fmt.Sprintf("name              = %q", name),
		`name                = "orders"`, fmt.Sprintf("name                = %q", name),
		`name      = "orders"`, fmt.Sprintf("name      = %q", name),
		`"default/vlan100"`, `"default/vm-net-100"`, `"vlan100"`, `"vm-net-100"`,
		`engine_version      = "16"`, "engine_version      = \"15\"\n  os_image            = \"default/debian-12\"",
		"deletion_protection = true", "deletion_protection = false",
	)
}

// checkAction compares what the page writes with the action's schema.
func checkAction(t *testing.T, f fragment) {
	t.Helper()
	server, err := providerserver.NewProtocol6WithError(provider.New("test")())()
	must(t, err)
	answer, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	must(t, err)
	kind := regexp.MustCompile(`(?m)^action "(\w+)" "\w+" \{\n  config \{$`).FindStringSubmatch(f.text)
	if kind == nil || answer.ActionSchemas[kind[1]] == nil {
		t.Fatalf("no action of the provider:\n%s", f.text)
	}
	known := map[string]bool{}
	for _, attribute := range answer.ActionSchemas[kind[1]].Schema.Block.Attributes {
		known[attribute.Name] = true
	}
	written := regexp.MustCompile(`(?m)^    (\w+) += `).FindAllStringSubmatch(f.text, -1)
	for _, m := range written {
		if !known[m[1]] {
			t.Errorf("the action has no argument %s", m[1])
		}
	}
	if len(written) == 0 {
		t.Error("the block configures nothing")
	}
}
