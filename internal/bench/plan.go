package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// concurrency is Terraform's own, of a plan.
const concurrency = 10

// memoryBar is for a plan of the largest fleet, in MiB.
const memoryBar = 100

// plan measures plans of unchanged instances against plans of as many
// terraform_data, plus the same GETs by a bare client.
func (b *bench) plan(ctx context.Context) (results []result, err error) {
	p, err := b.startProxy("plan")
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()
	fleet, err := b.raise(ctx, p, slices.Max(b.sizes))
	defer func() { err = errors.Join(err, lower(context.WithoutCancel(ctx), p, fleet)) }()
	if err != nil {
		return nil, err
	}
	for _, n := range b.sizes {
		of, err := b.planOf(ctx, p, n)
		results = append(results, of...)
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

// planOf measures one size at all round trips.
func (b *bench) planOf(ctx context.Context, p *proxy, n int) (results []result, err error) {
	if err := p.reset(0); err != nil {
		return nil, err
	}
	module := fmt.Sprintf(modules, n, p.Kubeconfig, namespace)
	ours, err := b.folder(fmt.Sprint("ours-", n), module+fmt.Sprintf(imports, namespace))
	if err != nil {
		return nil, err
	}
	if _, _, err := ours.run(ctx, "apply", "-auto-approve"); err != nil {
		return nil, err
	}
	if err := ours.write(module); err != nil {
		return nil, err
	}
	alone, err := b.floorOf(ctx, ours, n)
	if err != nil {
		return nil, err
	}
	for _, trip := range b.trips {
		took, memory, err := ours.plans(ctx, func() error { return p.reset(trip) })
		if err != nil {
			return results, err
		}
		sent, err := p.Record()
		if err != nil {
			return results, err
		}
		bare, err := b.bare(ctx, p, trip, sent)
		if err != nil {
			return results, err
		}
		floor := (alone + bare).Seconds()
		name := fmt.Sprintf("plan: %d instances, %s a round trip", n, trip)
		results = append(
			results,
			measured(name, "s", took.Seconds(), floor, 1.5*floor),
			measured(name+", GETs each", "requests", float64(len(sent))/float64(n), 0, 5),
		)
		if n == slices.Max(b.sizes) {
			results = append(results, measured(name+", provider's memory", "MiB", memory, 0, memoryBar))
		}
		fmt.Fprintf(os.Stderr, "%s %s: %s, terraform_data %s, bare %s\n", time.Now().Format(time.TimeOnly), name, took, alone, bare)
	}
	return results, nil
}

// floorOf plans as many terraform_data, each with what one instance has in the
// state.
func (b *bench) floorOf(ctx context.Context, ours *folder, n int) (time.Duration, error) {
	state, err := os.ReadFile(filepath.Join(ours.dir, "terraform.tfstate"))
	if err != nil {
		return 0, err
	}
	var held struct {
		Resources []struct {
			Instances []struct{ Attributes json.RawMessage }
		}
	}
	if err := json.Unmarshal(state, &held); err != nil {
		return 0, err
	}
	if len(held.Resources) != 1 || len(held.Resources[0].Instances) != n {
		return 0, fmt.Errorf("the state does not hold %d instances", n)
	}
	f, err := b.folder(fmt.Sprint("floor-", n), fmt.Sprintf(floors, n))
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(f.dir, "like.json"), held.Resources[0].Instances[0].Attributes, 0o600); err != nil {
		return 0, err
	}
	if _, _, err := f.run(ctx, "apply", "-auto-approve"); err != nil {
		return 0, err
	}
	took, _, err := f.plans(ctx, func() error { return nil })
	return took, err
}

// bare sends the same GETs, those of one instance at once, as many instances at
// a time as Terraform has in hand.
func (b *bench) bare(ctx context.Context, p *proxy, trip time.Duration, sent []request) (time.Duration, error) {
	name := regexp.MustCompile(`/pg-bench-(\d+)`)
	groups := map[string][]string{}
	for _, r := range sent {
		if r.Method != http.MethodGet {
			return 0, fmt.Errorf("a plan sent %s %s", r.Method, r.Path)
		}
		groups[name.FindString(r.Path)] = append(groups[name.FindString(r.Path)], r.Path)
	}
	var all [][]string
	for _, group := range groups {
		all = append(all, group)
	}
	client, err := rest.HTTPClientFor(p.config)
	if err != nil {
		return 0, err
	}
	var times []time.Duration
	for range b.repeat {
		if err := p.reset(trip); err != nil {
			return 0, err
		}
		began := time.Now()
		err := parallel(len(all), func(i int) error {
			failed := make([]error, len(all[i]))
			var round sync.WaitGroup
			for n, path := range all[i] {
				round.Go(func() { failed[n] = get(ctx, client, p.config.Host+path) })
			}
			round.Wait()
			return errors.Join(failed...)
		})
		if err != nil {
			return 0, err
		}
		times = append(times, time.Since(began))
	}
	return median(times), nil
}

func get(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
