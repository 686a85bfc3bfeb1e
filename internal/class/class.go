// Package class holds the catalogue of instance classes: the sizes an instance
// can have.
package class

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// minMemoryMiB is the least memory in which Debian and PostgreSQL boot.
const minMemoryMiB = 512

// A Class is the size of an instance.
type Class struct {
	// VCPU is the number of virtual CPU cores.
	VCPU int64
	// MemoryMiB is the virtual machine's memory limit in MiB.
	MemoryMiB int64
	// MaxConnections is PostgreSQL's max_connections.
	MaxConnections int64
}

// A Catalogue maps the names of classes to their sizes.
type Catalogue map[string]Class

// Default returns the classes that every provider knows: the DBaaS operator's.
func Default() Catalogue {
	return Catalogue{
		"db.t3.micro":   {VCPU: 1, MemoryMiB: 1024, MaxConnections: 50},
		"db.t3.small":   {VCPU: 1, MemoryMiB: 2048, MaxConnections: 100},
		"db.t3.medium":  {VCPU: 2, MemoryMiB: 4096, MaxConnections: 150},
		"db.t3.large":   {VCPU: 2, MemoryMiB: 8192, MaxConnections: 200},
		"db.t3.xlarge":  {VCPU: 4, MemoryMiB: 16384, MaxConnections: 300},
		"db.m5.large":   {VCPU: 2, MemoryMiB: 8192, MaxConnections: 200},
		"db.m5.xlarge":  {VCPU: 4, MemoryMiB: 16384, MaxConnections: 400},
		"db.m5.2xlarge": {VCPU: 8, MemoryMiB: 32768, MaxConnections: 600},
		"db.m5.4xlarge": {VCPU: 16, MemoryMiB: 65536, MaxConnections: 1000},
		"db.r5.large":   {VCPU: 2, MemoryMiB: 16384, MaxConnections: 300},
		"db.r5.xlarge":  {VCPU: 4, MemoryMiB: 32768, MaxConnections: 500},
		"db.r5.2xlarge": {VCPU: 8, MemoryMiB: 65536, MaxConnections: 800},
	}
}

// With returns a catalogue that knows the added classes too. It is an error to
// redefine a name, since the same configuration would then mean another size
// under another provider block, or to add a class that cannot run.
func (c Catalogue) With(added Catalogue) (Catalogue, error) {
	all := maps.Clone(c)
	if all == nil {
		all = Catalogue{}
	}
	for _, name := range added.Names() {
		if _, known := c[name]; known {
			return nil, fmt.Errorf("add class %q: the name is taken; a class can be added, not redefined: choose another name", name)
		}
		if err := check(name, added[name]); err != nil {
			return nil, fmt.Errorf("add class %q: %w", name, err)
		}
		all[name] = added[name]
	}
	return all, nil
}

// Lookup returns the class of that name. The error of an unknown name lists the
// known ones.
func (c Catalogue) Lookup(name string) (Class, error) {
	found, ok := c[name]
	if !ok {
		return Class{}, fmt.Errorf("look up class %q: unknown; known are %s", name, strings.Join(c.Names(), ", "))
	}
	return found, nil
}

// Names returns the names of the classes, sorted.
func (c Catalogue) Names() []string {
	return slices.Sorted(maps.Keys(c))
}

func check(name string, c Class) error {
	switch {
	case name == "" || strings.TrimSpace(name) != name:
		return fmt.Errorf("the name is empty or has blanks around it; write a name such as db.custom")
	case c.VCPU < 1:
		return fmt.Errorf("cpu is %d; at least 1 is needed", c.VCPU)
	case c.MemoryMiB < minMemoryMiB:
		return fmt.Errorf("memory_mib is %d; at least %d is needed", c.MemoryMiB, minMemoryMiB)
	// PostgreSQL's own upper limit is 262143; reserved connections need a few.
	case c.MaxConnections < 10 || c.MaxConnections > 262143:
		return fmt.Errorf("max_connections is %d; it must be from 10 to 262143", c.MaxConnections)
	}
	return nil
}
