package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

// create measures one create alone, then many one after another, then as many
// at once.
func (b *bench) create(ctx context.Context) ([]result, error) {
	p, err := b.startProxy("create")
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()
	alone, early, err := b.createAlone(ctx, p)
	if err != nil {
		return nil, err
	}
	results := []result{measured("create: requests before the VM's POST", "requests", float64(early), 0, 12)}
	late, err := b.createInTurn(ctx, p)
	if err != nil {
		return results, err
	}
	results = append(
		results,
		measured(fmt.Sprintf("create: event to return, median of %d", b.creates), "ms", milliseconds(median(late)), 0, 250),
		measured(fmt.Sprintf("create: event to return, worst of %d", b.creates), "ms", milliseconds(longest(late)), 0, 1000),
	)
	each, err := b.createAtOnce(ctx, p)
	if err != nil {
		return results, err
	}
	return append(results, measured(fmt.Sprintf("create: requests each, %d at once", b.creates), "requests", each, alone, alone)), nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func longest(of []time.Duration) (most time.Duration) {
	for _, d := range of {
		most = max(most, d)
	}
	return most
}

// createAlone returns how many requests a create sends, and how many of them
// before it asks for the machine.
func (b *bench) createAlone(ctx context.Context, p *proxy) (all float64, early int, err error) {
	if err := p.reset(0); err != nil {
		return 0, 0, err
	}
	if err := createAndDelete(ctx, p, "bench-alone", func() error {
		record, err := p.Record()
		all, early = float64(len(record)), len(record)
		for i, r := range record {
			if r.Method == "POST" && strings.Contains(r.Path, "/virtualmachines") {
				early = i
				break
			}
		}
		return err
	}); err != nil {
		return 0, 0, err
	}
	return all, early, nil
}

// createAndDelete calls made while the instance stands.
func createAndDelete(ctx context.Context, p *proxy, name string, made func() error) error {
	store, err := p.store()
	if err != nil {
		return err
	}
	got, err := store.Create(ctx, spec(name), func(*instance.Instance) {})
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	err = made()
	_, gone := store.Delete(ctx, instance.DeleteRequest{Key: got.Key(), Intent: instance.IntentDestroy})
	return errors.Join(err, gone)
}

// createInTurn returns how long after the event that makes an instance
// available its create returns.
func (b *bench) createInTurn(ctx context.Context, p *proxy) ([]time.Duration, error) {
	events, err := b.lab.watchMachines(ctx)
	if err != nil {
		return nil, err
	}
	defer events.stop()
	var late []time.Duration
	for n := range b.creates {
		name := fmt.Sprintf("bench-turn-%02d", n)
		if err := createAndDelete(ctx, p, name, func() error {
			returned := time.Now()
			at, err := events.ready(ctx, "pg-"+name)
			late = append(late, max(0, returned.Sub(at)))
			return err
		}); err != nil {
			return nil, err
		}
	}
	return late, nil
}

// createAtOnce returns how many requests each of many creates sends.
func (b *bench) createAtOnce(ctx context.Context, p *proxy) (float64, error) {
	if err := p.reset(0); err != nil {
		return 0, err
	}
	var creates, deletes sync.WaitGroup
	var counted sync.Once
	var record []request
	failed := make([]error, b.creates)
	creates.Add(b.creates)
	for n := range b.creates {
		deletes.Go(func() {
			here := sync.OnceFunc(creates.Done)
			defer here()
			failed[n] = createAndDelete(ctx, p, fmt.Sprintf("bench-once-%02d", n), func() (err error) {
				here()
				creates.Wait() // no request of a delete is counted
				counted.Do(func() { record, err = p.Record() })
				return err
			})
		})
	}
	deletes.Wait()
	return float64(len(record)) / float64(b.creates), errors.Join(failed...)
}

// watched are the times at which machines became ready with an address.
type watched struct {
	stop func()

	mutex   sync.Mutex
	at      map[string]time.Time
	changed chan struct{}
}

func (l *lab) watchMachines(ctx context.Context) (*watched, error) {
	ctx, cancel := context.WithCancel(ctx)
	machines := schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"}
	events, err := l.admin.Resource(machines).Namespace(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		cancel()
		return nil, err
	}
	w := &watched{stop: cancel, at: map[string]time.Time{}, changed: make(chan struct{})}
	go func() {
		defer events.Stop()
		for event := range events.ResultChan() {
			if vmi, ok := event.Object.(*unstructured.Unstructured); ok && serves(vmi) {
				w.note(vmi.GetName())
			}
		}
	}()
	return w, nil
}

func (w *watched) note(name string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if _, known := w.at[name]; !known {
		w.at[name] = time.Now()
		close(w.changed)
		w.changed = make(chan struct{})
	}
}

func (w *watched) ready(ctx context.Context, name string) (time.Time, error) {
	for {
		w.mutex.Lock()
		at, known := w.at[name]
		changed := w.changed
		w.mutex.Unlock()
		if known {
			return at, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return at, ctx.Err()
		}
	}
}

func serves(vmi *unstructured.Unstructured) bool {
	interfaces, _, _ := unstructured.NestedSlice(vmi.Object, "status", "interfaces")
	conditions, _, _ := unstructured.NestedSlice(vmi.Object, "status", "conditions")
	has := func(list []any, field string, is func(any) bool) bool {
		for _, item := range list {
			if m, ok := item.(map[string]any); ok && is(m[field]) && (field != "type" || m["status"] == "True") {
				return true
			}
		}
		return false
	}
	return has(interfaces, "ipAddress", func(v any) bool { return v != nil && v != "" }) &&
		has(conditions, "type", func(v any) bool { return v == "Ready" })
}
