package acceptance

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// blocks are the examples of a Markdown text in one language.
func blocks(text, language string) []string {
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	must(t, err)
	return string(text)
}

// What the README shows is what the documentation shows, and what the next
// test applies.
func TestReadmeShowsTheExamples(t *testing.T) {
	shown := blocks(readme(t), "hcl")
	if len(shown) != 2 {
		t.Fatalf("the README has %d examples, want the provider and the shortest instance", len(shown))
	}
	for i, file := range []string{"provider/provider.tf", "resources/dbaas_instance/resource.tf"} {
		example, err := os.ReadFile(filepath.Join("../../examples", file))
		must(t, err)
		if !strings.Contains(shown[i], strings.TrimSpace(string(example))) {
			t.Errorf("the README shows another example than examples/%s", file)
		}
	}
	if lines := strings.Count(shown[1], "\n"); lines > 12 {
		t.Errorf("the shortest example has %d lines, want 12 at most", lines)
	}
}

func TestShortestExampleOfTheReadme(t *testing.T) {
	l := useLab(t)
	c := processCLI(t, t.TempDir(), "KUBE_CONFIG_PATH="+l.kubeconfig)
	c.write(strings.Join(blocks(readme(t), "hcl"), "\n"))
	c.must("apply", "-auto-approve", "-input=false", "-no-color")
	if got := c.attributes("dbaas_instance.orders")["status"]; got != "available" {
		t.Errorf("status %v", got)
	}
	l.idle("orders")
	if code, out := c.run("plan", "-detailed-exitcode", "-input=false", "-no-color"); code != 0 {
		t.Errorf("a second plan exits with %d:\n%s", code, out)
	}
	if got, want := c.must("output", "-raw", "ca"), string(l.credentials("orders").Data["ca_cert"]); got != want {
		t.Errorf("output ca: %q, the Secret has %q", got, want)
	}
	if got, want := c.must("output", "-raw", "connection_uri"), string(l.credentials("orders").Data["connection_uri"]); got != want {
		t.Errorf("output connection_uri: %q, the Secret has %q", got, want)
	}
	c.must("destroy", "-auto-approve", "-input=false", "-no-color")
	must(t, l.nothingLeft("orders")(nil))
}
