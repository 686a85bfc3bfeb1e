package faults

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRecordHasSizesAndNoBodies(t *testing.T) {
	overBoth(t, func(t *testing.T, b bench) {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "hunter2"}}
		if _, err := b.maps.Create(context.Background(), m, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		// The answer can be faster than the end of its entry.
		b.until(t, func(r Record) bool { return len(r.Open()) == 0 })
		text, err := json.Marshal(b.proxy.Record())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "hunter2") {
			t.Errorf("a body is in the record: %s", text)
		}
		if e := b.proxy.Record()[0]; e.BytesIn == 0 || e.BytesOut == 0 || e.Duration <= 0 || e.Time.IsZero() {
			t.Errorf("recorded: %+v", e)
		}
	})
}

func TestWritesAreWhatChangesTheCluster(t *testing.T) {
	r := Record{
		{Index: 1, Method: "GET", Path: "/api/v1/namespaces/ns/secrets/a"},
		{Index: 2, Method: "POST", Path: "/api/v1/namespaces/ns/secrets?fieldManager=x", Upstream: 201},
		{Index: 3, Method: "POST", Path: "/api/v1/namespaces/ns/secrets?dryRun=All", Upstream: 201},
		{Index: 4, Method: "POST", Path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", Upstream: 201},
		{Index: 5, Method: "WATCH", Path: "/api/v1/namespaces/ns/secrets?watch=true"},
		{Index: 6, Method: "PATCH", Path: "/api/v1/namespaces/ns/secrets/a"},
		{Index: 7, Method: "PUT", Path: "/api/v1/namespaces/ns/secrets/a", Upstream: 409},
		{Index: 8, Method: "DELETE", Path: "/api/v1/namespaces/ns/secrets/a", Upstream: 200},
	}
	if diff := cmp.Diff([]int{2, 6, 7, 8}, indexes(r.Writes())); diff != "" {
		t.Errorf("writes:\n%s", diff)
	}
	if diff := cmp.Diff([]int{2, 7, 8}, indexes(r.Writes().Reached())); diff != "" {
		t.Errorf("writes that the server saw:\n%s", diff)
	}
	if n := r.Count("", "/secrets/a$"); n != 4 {
		t.Errorf("counted %d requests for one object", n)
	}
}

func indexes(r Record) []int {
	var out []int
	for _, e := range r {
		out = append(out, e.Index)
	}
	return out
}

func TestStaleAnswersWithTheFirstAnswer(t *testing.T) {
	overBoth(t, func(t *testing.T, b bench) {
		if n := b.listed(t); n != 0 {
			t.Fatalf("%d objects in a new server", n)
		}
		if err := b.get("a"); !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		if err := b.create("a"); err != nil {
			t.Fatal(err)
		}
		b.inject(t, Rule{Action: Stale, Path: "/configmaps($|/a$)", Times: 2})
		if n := b.listed(t); n != 0 {
			t.Errorf("%d objects in an old list", n)
		}
		if err := b.get("a"); !apierrors.IsNotFound(err) {
			t.Errorf("get: %v, want the old answer", err)
		}
		if err := b.get("a"); err != nil {
			t.Errorf("the rule is over: %v", err)
		}
	})
}

func TestStaleAnswersWithTheMarkedAnswer(t *testing.T) {
	overBoth(t, func(t *testing.T, b bench) {
		var got []int
		list := func() { got = append(got, b.listed(t)) }
		list()
		if err := b.create("a"); err != nil {
			t.Fatal(err)
		}
		b.inject(t, Rule{Action: Stale, Snapshot: Marked}) // nothing is marked yet
		list()
		b.proxy.Mark()
		if err := b.create("b"); err != nil {
			t.Fatal(err)
		}
		list()
		list()
		if diff := cmp.Diff([]int{0, 1, 1, 2}, got); diff != "" {
			t.Errorf("lengths of the lists:\n%s", diff)
		}
	})
}

func TestStaleAnswersAreNotForOthers(t *testing.T) {
	b := newBench(t, nil)
	b.listed(t)
	if err := b.create("a"); err != nil {
		t.Fatal(err)
	}
	b.inject(t, Rule{Action: Stale})
	b.config.BearerToken = "another"
	if n := b.as(t, b.config).listed(t); n != 1 {
		t.Errorf("%d objects: somebody else's answer", n)
	}
}

func (b bench) listed(t *testing.T) int {
	t.Helper()
	l, err := b.maps.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(l.Items)
}
