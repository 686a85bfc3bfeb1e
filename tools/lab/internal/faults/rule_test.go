package faults

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRulesThatWouldDoNothingAreRefused(t *testing.T) {
	cases := map[string]string{
		`{"action":"explode"}`:                                `unknown action "explode"`,
		`{"action":"answer"}`:                                 "status 0 is not one of 400 to 599",
		`{"action":"cut","status":500}`:                       "action cut takes no status, reason or retryAfter",
		`{"action":"delay"}`:                                  "action delay without a delay",
		`{"action":"stale","effect":true}`:                    "action stale takes no effect",
		`{"action":"cut","events":1}`:                         "action cut takes no events or after",
		`{"action":"stale","snapshot":"x"}`:                   `action stale takes no snapshot "x"`,
		`{"action":"cut","times":-2}`:                         "a count or a time is negative",
		`{"action":"cut","path":"("}`:                         "path: error parsing regexp",
		`{"action":"cut","metod":"GET"}`:                      `unknown field "metod"`,
		`{"action":"delay","delay":"soon"}`:                   "invalid duration",
		`{"action":"answer","status":503,"snapshot":"first"}`: "action answer takes no snapshot",
	}
	p := New(Options{})
	for text, want := range cases {
		rule, err := ParseRule(strings.NewReader(text))
		if err == nil {
			err = p.Inject(rule)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestRuleChoosesRequests(t *testing.T) {
	// The client's requests: 1 GET a, 2 GET b, 3 GET a, 4 GET b, 5 GET a.
	cases := map[string]struct {
		rule Rule
		want []int // indexes of disturbed requests
	}{
		"the next":              {Rule{}, []int{1}},
		"path":                  {Rule{Path: "/b$"}, []int{2}},
		"nth match":             {Rule{Path: "/a$", Nth: 2}, []int{3}},
		"index":                 {Rule{Index: 4}, []int{4}},
		"index and path":        {Rule{Index: 2, Path: "/a$"}, []int{3}},
		"times":                 {Rule{Nth: 2, Times: 2}, []int{2, 3}},
		"for ever":              {Rule{Path: "/a$", Times: -1}, []int{1, 3, 5}},
		"another method":        {Rule{Method: "POST", Times: -1}, nil},
		"one of several":        {Rule{Method: "post, get", Index: 5}, []int{5}},
		"a watch is not a GET":  {Rule{Method: Watch, Times: -1}, nil},
		"index beyond the last": {Rule{Index: 6}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			c.rule.Action, c.rule.Status = Answer, 403
			b.inject(t, c.rule)
			for _, m := range []string{"a", "b", "a", "b", "a"} {
				if err := b.get(m); !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
			}
			var got []int
			for _, e := range b.proxy.Record().Faults() {
				got = append(got, e.Index)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDelayHoldsARequestBack(t *testing.T) {
	overBoth(t, func(t *testing.T, b bench) {
		b.inject(t, Rule{Method: "POST", Action: Delay, Delay: Duration(time.Hour)})
		done := make(chan error)
		go func() { done <- b.create("a") }()
		if err := b.get("a"); !apierrors.IsNotFound(err) {
			t.Errorf("get: %v", err)
		}
		// Clear lets it go, as the end of the delay would.
		b.until(t, func(r Record) bool { return len(r.Faults().Open()) == 1 })
		b.proxy.Clear()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := b.server.created(); n != 1 {
			t.Errorf("%d objects", n)
		}
	})
}

func TestADelayedRequestIsDroppedWithItsClient(t *testing.T) {
	overBoth(t, func(t *testing.T, b bench) {
		b.inject(t, Rule{Action: Delay, Delay: Duration(time.Hour)})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := b.maps.Get(ctx, "a", metav1.GetOptions{})
			done <- err
		}()
		b.until(t, func(r Record) bool { return len(r.Open()) == 1 })
		cancel()
		if err := <-done; err == nil {
			t.Error("the request got an answer")
		}
		b.until(t, func(r Record) bool { return len(r.Open()) == 0 })
		if e := b.proxy.Record()[0]; e.Upstream != 0 {
			t.Errorf("the server was asked: %+v", e)
		}
	})
}

func (b bench) until(t *testing.T, condition func(Record) bool) {
	t.Helper()
	if err := b.proxy.Until(t.Context(), condition); err != nil {
		t.Fatal(err)
	}
}

func TestControlDoesWhatTheProxyDoes(t *testing.T) {
	b := newBench(t, nil)
	s := httptest.NewServer(b.proxy.Control())
	defer s.Close()
	c, ctx := Client{URL: s.URL}, t.Context()
	if err := c.Inject(ctx, Rule{Action: Answer, Status: 403, Times: -1}); err != nil {
		t.Fatal(err)
	}
	if err := b.get("a"); !apierrors.IsForbidden(err) {
		t.Error(err)
	}
	got, err := c.Record(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := Record{{
		Index: 1, Method: "GET", Path: "/api/v1/namespaces/ns/configmaps/a", Status: 403, Fault: "answer 403", UserAgent: "bench",
	}}
	ignore := cmp.FilterPath(func(p cmp.Path) bool {
		switch p.Last().String() {
		case ".Time", ".Duration", ".BytesOut":
			return true
		}
		return false
	}, cmp.Ignore())
	if diff := cmp.Diff(want, got, ignore); diff != "" {
		t.Error(diff)
	}
	if err := c.Clear(ctx); err != nil {
		t.Error(err)
	}
	if err := b.get("a"); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	if err := c.Reset(ctx); err != nil {
		t.Error(err)
	}
	if n := len(b.proxy.Record()); n != 0 {
		t.Errorf("%d requests after the reset", n)
	}
	if err := c.Inject(ctx, Rule{Action: "explode"}); err == nil || !strings.Contains(err.Error(), "unknown action") {
		t.Error(err)
	}
}
