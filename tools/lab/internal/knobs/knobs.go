// Package knobs names what can be made to go wrong in a lab, and reads the
// settings from where a test or a person puts them.
package knobs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Where knobs are set for the whole lab or, as NAMESPACE.NAME.KNOB, for one object.
const (
	ConfigMapNamespace = "lab-system"
	ConfigMapName      = "lab-knobs"
	// AnnotationPrefix makes an annotation of a VirtualMachine, claim or image a
	// knob of that object. It outranks the ConfigMap.
	AnnotationPrefix = "lab.dbaas/"
)

// Names of the knobs; Table says what each does.
const (
	RunningAfter    = "running-after"
	AddressAfter    = "address-after"
	ReadyAfter      = "ready-after"
	NeverReady      = "never-ready"
	NoAgent         = "no-agent"
	ProbeFails      = "probe-fails"
	ReadyFlaps      = "ready-flaps"
	Addresses       = "addresses"
	NICOrder        = "nic-order"
	Console         = "console"
	Unschedulable   = "unschedulable"
	CrashLoop       = "crash-loop"
	CrashAfter      = "crash-after"
	RestartRequired = "restart-required"
	Backup          = "backup"
	NoQuota         = "no-quota"
	ClaimPending    = "claim-pending"
	ClaimFrozen     = "claim-frozen"
	GrowOffline     = "grow-offline"
	ImageProgress   = "image-progress"
	ImageFails      = "image-fails"
	Webhook         = "webhook"
	PackageProxy    = "package-proxy"
)

// A Type says how a knob's value is written.
type Type string

// The types of knobs.
const (
	Bool     Type = "true"
	Duration Type = "duration"
	Percent  Type = "percent"
	Text     Type = "text"
	JSON     Type = "json"
	Word     Type = "word"
)

// A Knob is one thing that can be set.
type Knob struct {
	Name string
	Type Type
	// On is the kind of object it belongs to: vm, claim, image or lab.
	On string
	// Words are the values of a knob of type Word.
	Words   []string
	Meaning string
}

// Table returns every knob.
func Table() []Knob {
	return []Knob{
		{Name: RunningAfter, Type: Duration, On: "vm", Meaning: "the guest boots that long after its pod started"},
		{Name: AddressAfter, Type: Duration, On: "vm", Meaning: "the agent reports no address before that long after the boot"},
		{Name: ReadyAfter, Type: Duration, On: "vm", Meaning: "the readiness probe fails before that long after the boot"},
		{Name: NeverReady, Type: Bool, On: "vm", Meaning: "the readiness probe always fails, without output"},
		{Name: NoAgent, Type: Bool, On: "vm", Meaning: "the guest's agent does not answer: no address, no probe"},
		{Name: ProbeFails, Type: Text, On: "vm", Meaning: "the readiness probe fails and prints this text"},
		{Name: ReadyFlaps, Type: Duration, On: "vm", Meaning: "Ready changes each time that long has passed, whatever the probe says"},
		{Name: Addresses, Type: JSON, On: "vm", Meaning: `what the agent reports instead, over time: [{"after":"0s","addresses":{"data-net":["10.0.2.2"]}}, ...]; a last step {"after":"4s","repeat":true} starts over`},
		{Name: NICOrder, Type: Word, On: "vm", Words: []string{"reverse"}, Meaning: "status lists the network cards in this order"},
		{Name: Console, Type: Text, On: "vm", Meaning: "lines that the guest prints on its console when it boots (sim)"},
		{Name: Unschedulable, Type: Text, On: "vm", Meaning: "the scheduler finds no node, for this reason"},
		{Name: CrashLoop, Type: Bool, On: "vm", Meaning: "every start fails before the guest runs, so that KubeVirt waits longer and longer (CrashLoopBackOff)"},
		{Name: CrashAfter, Type: Duration, On: "vm", Meaning: "the guest crashes that long after each boot; as it ran, KubeVirt starts it again at once"},
		{Name: RestartRequired, Type: Bool, On: "vm", Meaning: "the condition RestartRequired stays on the VirtualMachine, whatever is true"},
		{Name: Backup, Type: Bool, On: "vm", Meaning: "a VirtualMachineBackup is in progress, so Harvester refuses to stop the machine"},
		{Name: NoQuota, Type: Bool, On: "vm", Meaning: "a ResourceQuota leaves no memory in the machine's namespace"},
		{Name: ClaimPending, Type: Text, On: "claim", Meaning: "the claim stays Pending, with this text in an event"},
		{Name: ClaimFrozen, Type: Bool, On: "claim", Meaning: "the claim's capacity never grows"},
		{Name: GrowOffline, Type: Bool, On: "claim", Meaning: "the claim grows only while no machine uses it"},
		{Name: ImageProgress, Type: Percent, On: "image", Meaning: "the import stays at so many percent"},
		{Name: ImageFails, Type: Text, On: "image", Meaning: "every attempt at the import fails with this text, until Harvester gives up"},
		{Name: Webhook, Type: Word, On: "lab", Words: []string{"down", "removed"}, Meaning: "Harvester's admission webhooks refuse connections, or are not registered"},
		{Name: PackageProxy, Type: Word, On: "lab", Words: []string{"down"}, Meaning: "guests get no packages"},
	}
}

// Lookup finds a knob by name.
func Lookup(name string) (Knob, bool) {
	t := Table()
	i := slices.IndexFunc(t, func(k Knob) bool { return k.Name == name })
	if i < 0 {
		return Knob{}, false
	}
	return t[i], true
}

// Check says what is wrong with a value of the knob.
func (k Knob) Check(value string) error {
	switch k.Type {
	case Bool:
		if value != "true" {
			return fmt.Errorf("set %s: the value is %q, only \"true\" is possible", k.Name, value)
		}
	case Duration:
		if d, err := time.ParseDuration(value); err != nil || d < 0 {
			return fmt.Errorf("set %s: %q is not a duration such as 2s", k.Name, value)
		}
	case Percent:
		if n, err := strconv.Atoi(value); err != nil || n < 0 || n > 100 {
			return fmt.Errorf("set %s: %q is not a number from 0 to 100", k.Name, value)
		}
	case Word:
		if !slices.Contains(k.Words, value) {
			return fmt.Errorf("set %s: %q is none of %s", k.Name, value, strings.Join(k.Words, ", "))
		}
	case JSON:
		if _, err := ParseSchedule(value); err != nil {
			return fmt.Errorf("set %s: %w", k.Name, err)
		}
	case Text:
	}
	return nil
}

// CheckKey says what is wrong with a ConfigMap's key and its value.
func CheckKey(key, value string) error {
	_, _, name := splitKey(key)
	k, ok := Lookup(name)
	if !ok {
		return fmt.Errorf("set %s: there is no knob %q", key, name)
	}
	return k.Check(value)
}

// splitKey takes NAMESPACE.NAME.KNOB apart. A namespace and a knob have no dots, a
// name may have some.
func splitKey(key string) (namespace, name, knob string) {
	first, last := strings.Index(key, "."), strings.LastIndex(key, ".")
	if first < 0 || first == last {
		return "", "", key
	}
	return key[:first], key[first+1 : last], key[last+1:]
}
