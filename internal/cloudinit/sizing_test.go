package cloudinit_test

import (
	"cmp"
	"fmt"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/wso2/terraform-provider-dbaas/internal/class"
)

// machine is what a size is computed from.
type machine struct{ memoryMiB, vcpus, connections, storageGiB int64 }

// catalogue yields the provider's classes, the small ones first.
func catalogue() iter.Seq2[string, class.Class] {
	known := class.Default()
	names := known.Names()
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(known[a].MemoryMiB, known[b].MemoryMiB), cmp.Compare(known[a].MaxConnections, known[b].MaxConnections))
	})
	return func(yield func(string, class.Class) bool) {
		for _, name := range names {
			if !yield(name, known[name]) {
				return
			}
		}
	}
}

// sizes runs the guest's own code.
func sizes(t *testing.T, m machine) map[string]string {
	t.Helper()
	out := bash(t, `. guest/sizing.sh; sizing "$@"`,
		strconv.FormatInt(m.memoryMiB, 10), strconv.FormatInt(m.vcpus, 10), strconv.FormatInt(m.connections, 10), strconv.FormatInt(m.storageGiB, 10))
	settings := map[string]string{}
	for line := range strings.Lines(out) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " = ")
		settings[name] = value
	}
	return settings
}

func TestSizing(t *testing.T) {
	for name, test := range map[string]struct {
		machine machine
		want    string
	}{
		"the smallest class, of which the kernel takes some": {
			machine{970, 1, 50, 1},
			"shared_buffers=242MB effective_cache_size=727MB work_mem=4MB maintenance_work_mem=60MB autovacuum_work_mem=16MB " +
				"max_wal_size=128MB min_wal_size=32MB max_worker_processes=8 max_parallel_workers=1 " +
				"max_parallel_workers_per_gather=0 max_parallel_maintenance_workers=0 random_page_cost=1.1",
		},
		"a medium one": {
			machine{4096, 2, 150, 50},
			"shared_buffers=1024MB effective_cache_size=3072MB work_mem=6MB maintenance_work_mem=256MB autovacuum_work_mem=64MB " +
				"max_wal_size=5120MB min_wal_size=1280MB max_worker_processes=8 max_parallel_workers=2 " +
				"max_parallel_workers_per_gather=1 max_parallel_maintenance_workers=1 random_page_cost=1.1",
		},
		"the largest one": {
			machine{65536, 16, 1000, 1000},
			"shared_buffers=16384MB effective_cache_size=49152MB work_mem=16MB maintenance_work_mem=2048MB autovacuum_work_mem=512MB " +
				"max_wal_size=8192MB min_wal_size=2048MB max_worker_processes=16 max_parallel_workers=16 " +
				"max_parallel_workers_per_gather=4 max_parallel_maintenance_workers=4 random_page_cost=1.1",
		},
		"a class of the owner's, for few connections": {
			machine{512, 1, 10, 1},
			"shared_buffers=128MB effective_cache_size=384MB work_mem=12MB maintenance_work_mem=32MB autovacuum_work_mem=16MB " +
				"max_wal_size=128MB min_wal_size=32MB max_worker_processes=8 max_parallel_workers=1 " +
				"max_parallel_workers_per_gather=0 max_parallel_maintenance_workers=0 random_page_cost=1.1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := map[string]string{}
			for field := range strings.FieldsSeq(test.want) {
				key, value, _ := strings.Cut(field, "=")
				want[key] = value
			}
			if diff := gocmp.Diff(want, sizes(t, test.machine)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A machine whose connections all sort at once, while autovacuum and an index
// build run, must not run out of memory.
func TestEveryClassIsSafe(t *testing.T) {
	// What PostgreSQL itself needs for a connection without a query.
	const connectionMiB = 4
	for name, c := range catalogue() {
		s := sizes(t, machine{c.MemoryMiB, c.VCPU, c.MaxConnections, 20})
		mib := func(setting string) int64 {
			value, err := strconv.ParseInt(strings.TrimSuffix(s[setting], "MB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
		need := mib("shared_buffers") + c.MaxConnections*(mib("work_mem")+connectionMiB) + mib("maintenance_work_mem") + 3*mib("autovacuum_work_mem")
		if need > c.MemoryMiB*95/100 {
			t.Errorf("%s: all at once take %d MiB of %d", name, need, c.MemoryMiB)
		}
	}
}

// The documentation's table is what the guest computes.
func TestSizingGuideIsCurrent(t *testing.T) {
	var b strings.Builder
	b.WriteString(`---
page_title: "What each class sets in PostgreSQL"
description: |-
  The settings that follow from an instance's class.
---

# What each class sets in PostgreSQL

At every boot an instance computes these settings from the memory and the processors that its machine has, from
` + "`max_connections`" + ` of its class and from ` + "`allocated_storage`" + `. So they follow a change of the class by themselves.
The machine's kernel keeps some memory for itself: what ` + "`SHOW shared_buffers`" + ` says is a few percent below the table.
Everything but ` + "`max_connections`" + ` may be set otherwise in ` + "`parameters`" + `.

| class | vCPU | memory | max_connections | shared_buffers | effective_cache_size | work_mem | maintenance_work_mem | autovacuum_work_mem | parallel workers a query |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
`)
	for name, c := range catalogue() {
		s := sizes(t, machine{c.MemoryMiB, c.VCPU, c.MaxConnections, 20})
		fmt.Fprintf(&b, "| `%s` | %d | %d MiB | %d | %s | %s | %s | %s | %s | %s |\n", name, c.VCPU, c.MemoryMiB, c.MaxConnections,
			s["shared_buffers"], s["effective_cache_size"], s["work_mem"], s["maintenance_work_mem"], s["autovacuum_work_mem"],
			s["max_parallel_workers_per_gather"])
	}
	b.WriteString(`
The write-ahead log may take a tenth of the storage, between 128 MB and 8 GB (` + "`max_wal_size`" + `). ` + "`max_worker_processes`" + ` is 8 or
the number of processors, if that is more; ` + "`random_page_cost`" + ` is 1.1, since the volumes are on solid state disks.
`)
	const path = "../../templates/guides/sizing.md.tmpl"
	if *update {
		if err := os.MkdirAll("../../templates/guides", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if diff := gocmp.Diff(b.String(), string(got)); diff != "" {
		t.Error(diff)
	}
}
