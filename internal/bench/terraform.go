package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

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
