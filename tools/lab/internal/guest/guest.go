// Package guest boots the machines that the lab's VirtualMachineInstances stand for.
//
// The node agent decides when a machine runs and what it is given; a Backend
// decides how it runs: sim (nothing boots), container (systemd-nspawn) or vm
// (QEMU).
package guest

import (
	"context"
	"errors"
	"net/netip"
	"time"
)

// Kind names a Backend. It is chosen once, when a lab starts.
type Kind string

// The three kinds of guest.
const (
	Sim       Kind = "sim"
	Container Kind = "container"
	VM        Kind = "vm"
)

// ErrNoAgent is returned by Machine.Exec and Machine.Interfaces while the
// guest's agent does not answer.
var ErrNoAgent = errors.New("guest agent is not connected")

// A Volume is the storage behind one PersistentVolume.
type Volume struct {
	// Name is the PersistentVolume's name; it is unique in a lab.
	Name string
	// Bytes is the size of the block device.
	Bytes int64
	// FromImage says that the volume starts as a copy of the guest image (a
	// root disk). Any other volume starts blank.
	FromImage bool
}

// A Disk attaches a Volume to a machine.
type Disk struct {
	// Name is the disk's name in the VirtualMachineInstance.
	Name string
	// Serial appears in the guest as /dev/disk/by-id/virtio-SERIAL.
	Serial string
	// Volume is the name of the volume behind the disk.
	Volume string
	// Boot marks the root disk.
	Boot bool
}

// A NIC is one network card of a machine, on the lab's one network.
type NIC struct {
	// Name is the interface's name in the VirtualMachineInstance.
	Name string
	// MAC is the card's hardware address, in lower case with colons.
	MAC string
	// Address is what the lab's DHCP server leases to MAC.
	Address netip.Addr
}

// A Seed is the NoCloud data that cloud-init finds.
type Seed struct {
	// InstanceID and Hostname make up the meta-data.
	InstanceID, Hostname string
	// UserData and NetworkData are the bytes of the Secret's keys.
	UserData, NetworkData []byte
}

// A Spec says what to boot.
type Spec struct {
	// Namespace and Name are those of the VirtualMachineInstance.
	Namespace, Name string
	// UID is the VirtualMachineInstance's uid: two boots of one name differ in it.
	UID       string
	VCPU      int
	MemoryMiB int
	Disks     []Disk
	NICs      []NIC
	// Seed is nil for a machine without cloud-init data.
	Seed *Seed
}

// An Interface is what the guest's agent reports about one card.
type Interface struct {
	// MAC is the hardware address; Device the name inside the guest (enp1s0).
	MAC, Device string
	// Addresses are in the agent's order, link-local ones included.
	Addresses []netip.Addr
}

// An Exit says how a machine ended.
type Exit struct {
	// Failed is true when the machine crashed or could not be started, false
	// when it was powered off, from inside or by Shutdown or Kill.
	Failed bool
	// Reason is a sentence for the log.
	Reason string
}

// A Backend boots machines of one kind and keeps their volumes.
type Backend interface {
	// EnsureVolume creates the volume, or grows it to v.Bytes. It never shrinks
	// one and never changes its contents. A running machine sees the new size.
	EnsureVolume(ctx context.Context, v Volume) error
	// DeleteVolume removes the volume and its data; a missing one is no error.
	DeleteVolume(ctx context.Context, name string) error
	// Boot starts a machine and returns once it runs (the firmware, not the
	// operating system). ctx bounds the start only.
	Boot(ctx context.Context, s Spec) (Machine, error)
	// SetLease makes the DHCP server give address to mac from now on: a running
	// guest takes it at its next renewal.
	SetLease(mac string, address netip.Addr)
	// Close stops every machine and frees every device, mount, link, namespace.
	Close() error
}

// A Machine is one running guest.
type Machine interface {
	// Exec runs a command inside the guest through its agent, bounded by ctx,
	// and returns its exit code and combined output. ErrNoAgent if there is none.
	Exec(ctx context.Context, command []string) (exitCode int, output string, err error)
	// Interfaces asks the agent for the guest's addresses.
	Interfaces(ctx context.Context) ([]Interface, error)
	// ConsoleLog is the path of the serial console's log file. It grows while
	// the machine runs and starts empty at each Boot.
	ConsoleLog() string
	// Reboot restarts the guest's operating system; the machine goes on.
	Reboot(ctx context.Context) error
	// Shutdown asks the guest to power off and pulls the plug after grace.
	Shutdown(ctx context.Context, grace time.Duration) error
	// Kill pulls the plug: what the guest had not synced is lost (vm only; a
	// container's page cache is the host's and survives).
	Kill() error
	// Done delivers the Exit once, when the machine has ended and its devices
	// are free.
	Done() <-chan Exit
}
