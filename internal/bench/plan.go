package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

// concurrency is Terraform's own, of a plan.
const concurrency = 10

// memoryBar is for a plan of the largest fleet, in MiB.
const memoryBar = 100

// plan measures plans of unchanged instances against plans of as many
// terraform_data, plus the same GETs by a bare client.
func (b *bench) plan(ctx context.Context) (results []result, err error) {
	p, err := b.startProxy(ctx, "plan", 0)
	if err != nil {
		return nil, err
	}
	defer p.stop()
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

// raise makes the instances that are planned.
func (b *bench) raise(ctx context.Context, p *proxy, n int) ([]*instance.Instance, error) {
	fleet := make([]*instance.Instance, n)
	err := parallel(n, func(i int) error {
		store, err := p.store()
		if err != nil {
			return err
		}
		fleet[i], err = store.Create(ctx, spec(fmt.Sprintf("bench-%04d", i)), func(*instance.Instance) {})
		if i%100 == 99 {
			fmt.Fprintf(os.Stderr, "%s %d instances\n", time.Now().Format(time.TimeOnly), i+1)
		}
		return err
	})
	return fleet, err
}

func lower(ctx context.Context, p *proxy, fleet []*instance.Instance) error {
	if err := p.reset(ctx, 0); err != nil {
		return err
	}
	return parallel(len(fleet), func(i int) error {
		if fleet[i] == nil {
			return nil
		}
		store, err := p.store()
		if err != nil {
			return err
		}
		_, err = store.Delete(ctx, instance.DeleteRequest{Key: fleet[i].Key(), Intent: instance.IntentDestroy})
		return err
	})
}

// parallel does many things, a few at a time.
func parallel(n int, do func(i int) error) error {
	failed := make([]error, n)
	next := make(chan int)
	var workers sync.WaitGroup
	for range concurrency {
		workers.Go(func() {
			for i := range next {
				failed[i] = do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
	return errors.Join(failed...)
}

const modules = `
locals {
  names = toset([for n in range(%[1]d) : format("bench-%%04d", n)])
}

provider "dbaas" {
  config_path = %[2]q
}

resource "dbaas_instance" "it" {
  for_each          = local.names
  name              = each.key
  namespace         = %[3]q
  instance_class    = "db.t3.micro"
  allocated_storage = 1
  network_ref       = "default/vm-net-100"
  engine_version    = "15"
  db_name           = replace(each.key, "-", "_")
  os_image          = "default/debian-12"
}
`

const imports = `
import {
  for_each = local.names
  to       = dbaas_instance.it[each.key]
  id       = "%s/${each.key}"
}
`

const floors = `
locals {
  like = jsondecode(file("like.json"))
}

resource "terraform_data" "it" {
  for_each = toset([for n in range(%d) : format("bench-%%04d", n)])
  input    = local.like
}
`

// folder is a root module of the bench.
type folder struct {
	b           *bench
	dir         string
	environment []string
}

func (b *bench) folder(name, module string) (*folder, error) {
	f := &folder{b: b, dir: filepath.Join(b.dir, name)}
	settings := filepath.Join(b.dir, "terraformrc")
	f.environment = append(os.Environ(), "TF_CLI_CONFIG_FILE="+settings, "CHECKPOINT_DISABLE=1")
	text := fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"registry.terraform.io/wso2/dbaas\" = %[1]q\n    \"registry.opentofu.org/wso2/dbaas\" = %[1]q\n  }\n  direct {}\n}\n", b.dir)
	return f, errors.Join(os.Mkdir(f.dir, 0o700), os.WriteFile(settings, []byte(text), 0o600), f.write(module))
}

func (f *folder) write(module string) error {
	if strings.Contains(module, "dbaas_instance") {
		module = "terraform {\n  required_providers {\n    dbaas = {\n      source = \"wso2/dbaas\"\n    }\n  }\n}\n" + module
	}
	return os.WriteFile(filepath.Join(f.dir, "main.tf"), []byte(module), 0o600)
}

// run returns how long Terraform took, and the provider's peak memory in MiB.
func (f *folder) run(ctx context.Context, arguments ...string) (time.Duration, float64, error) {
	command := exec.CommandContext(ctx, f.b.terraform, append(arguments, "-input=false", "-no-color")...)
	command.Dir, command.Env = f.dir, f.environment
	watching, stop := context.WithCancel(ctx)
	peak := make(chan float64, 1)
	go func() { peak <- peakOf(watching, f.b.provider) }()
	began := time.Now()
	out, err := command.CombinedOutput()
	took := time.Since(began)
	stop()
	if err != nil {
		err = fmt.Errorf("terraform %v: %w\n%s", arguments, err, out)
	}
	return took, <-peak, err
}

// plans is the median of some plans that find nothing to do.
func (f *folder) plans(ctx context.Context, before func() error) (took time.Duration, memory float64, err error) {
	var all []time.Duration
	for range f.b.repeat {
		if err := before(); err != nil {
			return 0, 0, err
		}
		one, peak, err := f.run(ctx, "plan", "-detailed-exitcode")
		if err != nil {
			return 0, 0, err
		}
		all, memory = append(all, one), max(memory, peak)
	}
	return median(all), memory, nil
}

// planOf measures one size at all round trips.
func (b *bench) planOf(ctx context.Context, p *proxy, n int) (results []result, err error) {
	if err := p.reset(ctx, 0); err != nil {
		return nil, err
	}
	module := fmt.Sprintf(modules, n, p.kubeconfig, namespace)
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
		took, memory, err := ours.plans(ctx, func() error { return p.reset(ctx, trip) })
		if err != nil {
			return results, err
		}
		sent, err := p.record(ctx)
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
		if err := p.reset(ctx, trip); err != nil {
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

// peakOf looks for processes of a program until ctx ends.
func peakOf(ctx context.Context, program string) (peak float64) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return peak
		case <-tick.C:
		}
		processes, _ := filepath.Glob("/proc/[0-9]*/exe")
		for _, link := range processes {
			if target, err := os.Readlink(link); err != nil || target != program {
				continue
			}
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
				if now, err := peakMemory(pid); err == nil {
					peak = max(peak, now)
				}
			}
		}
	}
}
