package provider

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

// diagnostic is one row of the table of all diagnostics: where it is made, and
// the words there that say what happened, why, and what to do; or, where words
// of others do, one of the following.
type diagnostic struct{ at, what, why, do string }

const (
	title   = "(title)"   // the title of the operation that failed says it
	cause   = "(cause)"   // the error that is wrapped says it
	advised = "(advised)" // report adds it: see the tests of what it adds
	given   = "(given)"   // another row's words are put in, or around
	handled = "(handled)" // it is not told: who called makes something of it
)

// place is where the sources make a diagnostic, or an error that becomes one.
type place struct {
	at, line string
	texts    []string
	wraps    bool // it holds another error
	call     bool // and not a composite literal, which can hold advice
}

// Every place that makes a diagnostic has a row, every row has a place, and
// its words stand there.
func TestEveryDiagnosticSaysWhatHappenedWhyAndWhatToDo(t *testing.T) {
	rows := slices.Clone(diagnostics())
	places := diagnosticPlaces(t)
	// The most special first: of two that fit one place the other has less to say.
	slices.SortStableFunc(rows, func(a, b diagnostic) int {
		return cmp.Compare(len(b.what+b.why+b.do), len(a.what+a.why+a.do))
	})
	for _, row := range rows {
		i := slices.IndexFunc(places, row.fits)
		if i < 0 {
			t.Errorf("nothing in %s says any more: %q, %q, %q", row.at, row.what, row.why, row.do)
			continue
		}
		row.judge(t, places[i])
		places = slices.Delete(places, i, i+1)
	}
	for _, p := range places {
		t.Errorf("%s: a diagnostic of %s has no row in the table: %q", p.line, p.at, p.texts)
	}
}

func (d diagnostic) fits(p place) bool {
	text := strings.Join(p.texts, "\n")
	for _, words := range []string{d.what, d.why, d.do} {
		if !strings.HasPrefix(words, "(") && !strings.Contains(text, words) {
			return false
		}
	}
	return p.at == d.at
}

func (d diagnostic) judge(t *testing.T, p place) {
	t.Helper()
	if d.what == "" || d.why == "" || d.do == "" || d.why == d.do && d.why != cause {
		t.Errorf("%s: the row of %s does not tell all three", p.line, d.at)
	}
	if !p.wraps && (d.why == cause || d.do == cause) {
		t.Errorf("%s: %s has no cause that could say it", p.line, d.at)
	}
	// What validators say stands alone: report is not asked.
	if d.do == advised && regexp.MustCompile(`^(provider\.(check|usable)|class\.|cloudinit\.Check)`).MatchString(d.at) {
		t.Errorf("%s: nobody adds to %s what to do", p.line, d.at)
	}
}

// diagnosticPlaces are those in the sources of all packages whose errors can
// reach the user. Left out is what only passes on: the functions through which
// all diagnostics go, and what adds to an error no more than its step.
func diagnosticPlaces(t *testing.T) []place {
	t.Helper()
	var all []place
	for _, folder := range []string{"provider", "instance", "cluster", "class", "cloudinit", "pki", "scram", "vm"} {
		files, err := filepath.Glob("../" + folder + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("no sources in %s: %v", folder, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			positions := token.NewFileSet()
			file, err := parser.ParseFile(positions, name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, declared := range file.Decls {
				at := folder + "." + functionName(declared)
				ast.Inspect(declared, func(n ast.Node) bool {
					if n == nil || !makesDiagnostic(n, folder) {
						return true
					}
					p := placeOf(n)
					p.at, p.line = at, positions.Position(n.Pos()).String()
					if !p.passesOn() {
						all = append(all, p)
					}
					return false
				})
			}
		}
	}
	return all
}

func functionName(declared ast.Decl) string {
	function, ok := declared.(*ast.FuncDecl)
	if !ok {
		return "var"
	}
	if function.Recv == nil {
		return function.Name.Name
	}
	receiver := function.Recv.List[0].Type
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	return lastName(receiver) + "." + function.Name.Name
}

// lastName is that of a function or type, without its package.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func makesDiagnostic(n ast.Node, folder string) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		name := lastName(n.Fun)
		of := ""
		if selector, ok := n.Fun.(*ast.SelectorExpr); ok {
			of = lastName(selector.X)
		}
		switch {
		case of == "fmt" && name == "Errorf", of == "errors" && name == "New", of == "diag" && strings.HasPrefix(name, "New"):
			return true
		case name == "report" || name == "refused" || name == "warn":
			return folder == "provider" // elsewhere a report is of progress
		case name == "append":
			return strings.HasSuffix(lastName(n.Args[0]), "arnings") && !n.Ellipsis.IsValid()
		}
		return slices.Contains([]string{
			"AddError", "AddAttributeError", "AddWarning", "AddAttributeWarning", "NewArgumentFuncError", "NewFuncError",
			"unconfigured", "refuse", "nameTaken", "fault",
		}, name)
	case *ast.CompositeLit:
		if list, ok := n.Type.(*ast.ArrayType); ok { // of findings or warnings
			kind := lastName(list.Elt)
			return len(n.Elts) > 0 && (kind == "Finding" || kind == "string" && isSprintf(n.Elts[0]))
		}
		return lastName(n.Type) == "Finding" || strings.HasSuffix(lastName(n.Type), "Error")
	case *ast.FuncDecl:
		return strings.HasSuffix(n.Name.Name, "Warning")
	}
	return false
}

func isSprintf(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	return ok && lastName(call.Fun) == "Sprintf"
}

func placeOf(n ast.Node) place {
	_, call := n.(*ast.CallExpr)
	p := place{call: call}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			// Shorter ones are separators.
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && len(strings.TrimSpace(text)) > 3 {
				p.texts = append(p.texts, text)
			}
		case *ast.Ident:
			p.wraps = p.wraps || slices.Contains([]string{"err", "Err", "cause", "why", "pauseErr", "Error", "errAbsent", "errImageAbsent", "warnings", "Warnings"}, n.Name)
		}
		return true
	})
	return p
}

func (p place) passesOn() bool {
	funnels := []string{"provider.report", "provider.refused", "provider.warn", "provider.add", "instance.nameTaken", "instance.refuse", "instance.wrap"}
	text := strings.Join(p.texts, "")
	step := p.call && len(p.texts) == 1 && regexp.MustCompile(`^([a-z%][^;]*: )?%w$`).MatchString(text) && !strings.HasPrefix(text, "%q")
	return slices.Contains(funnels, p.at) || strings.TrimSpace(text) == "" || step
}

// Whatever fails on the way to the cluster or there, what to do is told.
func TestEveryCauseIsAdvised(t *testing.T) {
	status := func(code int32, reason metav1.StatusReason, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: message, Details: &metav1.StatusDetails{Name: "b"}}}
	}
	sent := func(err error) error { return &url.Error{Op: "Get", URL: "https://api.example.com", Err: err} }
	const again = "Then try again."
	for story, test := range map[string]struct {
		err  error
		want string
	}{
		"nobody listens":          {sent(&net.OpError{Op: "dial", Err: errors.New("connection refused")}), again},
		"no such host":            {sent(&net.DNSError{Err: "no such host", IsNotFound: true}), again},
		"connection cut":          {sent(io.ErrUnexpectedEOF), again},
		"unknown authority":       {sent(&tls.CertificateVerificationError{Err: errors.New("unknown authority")}), "Check cluster_ca_certificate"},
		"certificate not taken":   {sent(&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}), "Check cluster_ca_certificate"},
		"token is over":           {status(401, metav1.StatusReasonUnauthorized, "Unauthorized"), "Renew the token"},
		"plugin for credentials":  {sent(errors.New("getting credentials: exec: not found")), "Renew the token"},
		"rule lacks":              {apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "b", errors.New(`User "u" cannot get resource "secrets" in API group "" in the namespace "a"`)), "examples/rbac/tenant-role.yaml"},
		"quota":                   {status(403, metav1.StatusReasonForbidden, "exceeded quota: small"), "Correct what it names"},
		"webhook says no":         {status(400, metav1.StatusReasonBadRequest, `admission webhook "validator" denied the request: no`), "Correct what it names"},
		"invalid":                 {status(422, metav1.StatusReasonInvalid, "spec is invalid"), "Correct what it names"},
		"written by another":      {status(409, metav1.StatusReasonConflict, "the object has been modified"), "Somebody else writes"},
		"kind is not served":      {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 404, Reason: metav1.StatusReasonNotFound}}, "kubectl get apiservices"},
		"server is busy":          {status(429, metav1.StatusReasonTooManyRequests, "too many requests"), "cannot answer for now"},
		"webhook does not answer": {status(500, metav1.StatusReasonInternalError, "failed calling webhook"), "cannot answer for now"},
		"time is over":            {context.DeadlineExceeded, "raise the limit in timeouts"},
		"interrupted":             {context.Canceled, "the next apply goes on"},
		"instance is gone":        {instance.ErrNotFound, "Plan again"},
		"Secret is damaged":       {&instance.SecretError{Namespace: "a", Name: "b", Key: "c", Problem: "is missing"}, "Restore the Secret from a backup"},
		"did not become ready":    {&instance.UnavailableError{Reason: "NotReady", Err: context.DeadlineExceeded}, "terraform untaint"},
		"something else":          {errors.New("marshal patch: impossible"), "TF_LOG=debug"},
	} {
		t.Run(story, func(t *testing.T) {
			var diags diag.Diagnostics
			report(&diags, "Cannot do it", fmt.Errorf("do it: %w", test.err))
			told := strings.Split(diags[0].Detail(), "\n\n")
			if len(told) < 2 || !strings.Contains(strings.Join(told[1:], "\n"), test.want) {
				t.Errorf("it is not told: %s\n%s", test.want, diags[0].Detail())
			}
			if diff := gocmp.Diff(sentence("do it: "+test.err.Error()), told[0]); diff != "" {
				t.Error(diff)
			}
		})
	}
}
