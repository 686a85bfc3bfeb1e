package faults

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// watched opens a watch and returns what arrives until the stream ends: the
// names of objects, and for an ERROR event its reason.
func (b bench) watched(t *testing.T) []string {
	t.Helper()
	w, err := b.maps.Watch(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	go func() { // the server offers two events and then waits
		for _, name := range []string{"a", "b"} {
			select {
			case b.server.events <- name:
			case <-t.Context().Done():
			}
		}
	}()
	var got []string
	for e := range w.ResultChan() {
		if e.Type == watch.Error {
			got = append(got, string(apierrors.ReasonForError(apierrors.FromObject(e.Object))))
			continue
		}
		got = append(got, e.Object.(*corev1.ConfigMap).Name)
	}
	return got
}

func TestWatchEndsAfterEvents(t *testing.T) {
	overBoth(t, func(t *testing.T, b bench) {
		b.inject(t, Rule{Action: EndWatch, Events: 1})
		if diff := cmp.Diff([]string{"a"}, b.watched(t)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWatchEndsAfterTime(t *testing.T) {
	overBoth(t, func(t *testing.T, b bench) {
		b.inject(t, Rule{Action: EndWatch, After: Duration(time.Millisecond)})
		b.watched(t) // would not return
		if e := b.proxy.Record()[0]; e.Method != Watch || e.Status != http.StatusOK || e.Fault != "end-watch" {
			t.Errorf("recorded: %+v", e)
		}
	})
}

func TestWatchExpiresInsideTheStream(t *testing.T) {
	overBoth(t, func(t *testing.T, b bench) {
		b.inject(t, Rule{Action: ExpireWatch, Events: 2})
		if diff := cmp.Diff([]string{"a", "b", "Expired"}, b.watched(t)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWatchIsCutWithItsConnection(t *testing.T) {
	overBoth(t, func(t *testing.T, b bench) {
		b.inject(t, Rule{Action: CutWatch, Events: 1})
		if diff := cmp.Diff([]string{"a"}, withoutErrors(b.watched(t))); diff != "" {
			t.Error(diff)
		}
		if e := b.proxy.Record()[0]; e.Fault != "cut-watch" {
			t.Errorf("recorded: %+v", e)
		}
	})
}

// withoutErrors drops the ERROR event that client-go itself makes of a broken
// connection, in some protocols.
func withoutErrors(events []string) []string {
	var names []string
	for _, e := range events {
		if len(e) == 1 {
			names = append(names, e)
		}
	}
	return names
}

func TestWatchIsRefused(t *testing.T) {
	overBoth(t, func(t *testing.T, b bench) {
		b.inject(t, Rule{Method: Watch, Action: Answer, Status: 410})
		if _, err := b.maps.List(context.Background(), metav1.ListOptions{}); err != nil {
			t.Errorf("a list is no watch: %v", err)
		}
		if _, err := b.maps.Watch(context.Background(), metav1.ListOptions{}); !apierrors.IsResourceExpired(err) {
			t.Errorf("watch: %v", err)
		}
	})
}

func TestAClientThatGivesUpDisturbsNobodyElse(t *testing.T) {
	overBoth(t, func(t *testing.T, b bench) {
		w, err := b.maps.Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := b.maps.Get(ctx, "hang", metav1.GetOptions{})
			done <- err
		}()
		b.until(t, func(r Record) bool { return len(r.Select("GET", "/hang$").Open()) == 1 })
		cancel()
		if err := <-done; err == nil {
			t.Error("the request got an answer")
		}
		b.until(t, func(r Record) bool { return len(r.Select("GET", "/hang$").Open()) == 0 })
		b.server.events <- "a"
		if e := <-w.ResultChan(); e.Type != watch.Added {
			t.Errorf("the watch got %q", e.Type)
		}
	})
}

func TestCutTakesAllThatSharesTheConnection(t *testing.T) {
	b := newBench(t, nil) // HTTP/2: one connection
	w, err := b.maps.Watch(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	b.inject(t, Rule{Method: "POST", Action: Cut})
	if err := b.create("a"); !connectionLost(err) {
		t.Errorf("create: %v", err)
	}
	for range w.ResultChan() { // ends, or the test does not
	}
}
