package faulttest

import (
	"fmt"
	"slices"
)

// kind is what an operation does to an instance, which decides how it is run
// and judged.
type kind int

const (
	creates kind = iota // from nothing
	changes             // an instance that stands
	removes
	looks // changes nothing: a read, an import, a plan
)

// operation is one row of the matrices.
type operation struct {
	name string
	kind kind
	// change returns, for the nth time on one instance, the configuration to
	// begin with and the one to apply.
	change func(now args, n int) (from, to args)
	// look is what an operation of the kind looks does.
	look look
}

// look is one way to look.
type look int

const (
	lookRead look = iota
	lookImport
	lookPlanCreate
	lookPlanGrow
	lookPlanDestroy
)

// minimal is an instance's shortest configuration in the lab.
func minimal(name string) args {
	return args{
		"name": name, "namespace": namespace, "instance_class": "db.t3.micro", "allocated_storage": 10,
		"network_ref": "default/vm-net-100", "engine_version": "15", "os_image": "default/debian-12",
		"timeouts": args{"create": "90s", "read": "90s", "update": "90s", "delete": "90s"},
	}
}

// monitored adds what makes the most requests.
func monitored(a args) args { return a.with(args{"monitoring": args{}}) }

func operations() []operation {
	set := func(name string, values ...any) func(args, int) (args, args) {
		return func(now args, n int) (args, args) {
			return now, now.with(args{name: values[n%len(values)]})
		}
	}
	turn := func(name string, from, to any) func(args, int) (args, args) {
		return func(now args, _ int) (args, args) { return now.with(args{name: from}), now.with(args{name: to}) }
	}
	return []operation{
		{name: "create", kind: creates},
		{name: "delete", kind: removes},
		{name: "class", kind: changes, change: set("instance_class", "db.t3.small", "db.t3.micro")},
		{name: "storage", kind: changes, change: func(now args, n int) (args, args) {
			return now, now.with(args{"allocated_storage": 11 + n})
		}},
		{name: "stop", kind: changes, change: turn("running", true, false)},
		{name: "start", kind: changes, change: turn("running", false, true)},
		{name: "parameters", kind: changes, change: set("parameters", args{"work_mem": "16MB"}, args{"work_mem": "8MB"})},
		{name: "tags", kind: changes, change: func(now args, n int) (args, args) {
			return now, now.with(args{"tags": args{"round": fmt.Sprint(n)}, "deletion_protection": n%2 == 0})
		}},
		{name: "monitoring-on", kind: changes, change: turn("monitoring", nil, args{})},
		{name: "monitoring-off", kind: changes, change: turn("monitoring", args{}, nil)},
		{name: "rotation", kind: changes, change: func(now args, n int) (args, args) {
			return now, now.with(args{"password_rotation": n + 1})
		}},
		{name: "read", kind: looks, look: lookRead},
		{name: "import", kind: looks, look: lookImport},
		{name: "plan-create", kind: looks, look: lookPlanCreate},
		{name: "plan-grow", kind: looks, look: lookPlanGrow},
		{name: "plan-destroy", kind: looks, look: lookPlanDestroy},
	}
}

// fault is one column of the matrix.
type fault struct {
	name string
	rule rule
	// on says whether a request of this method can be disturbed so.
	on func(method string) bool
	// lasting says that all requests from this one on are disturbed.
	lasting bool
	// kills says that the provider's process is killed when the request comes.
	kills bool
	// interrupts is how often Terraform is interrupted when the request comes.
	interrupts int
}

// retryAfter is what the server asks for, in seconds; longer than the first
// pauses of the provider's own, so that it can be told from them.
const retryAfter = 2

func faults() []fault {
	each := func(string) bool { return true }
	watch := func(method string) bool { return method == "WATCH" }
	write := func(method string) bool { return method != "WATCH" && method != "GET" }
	plain := func(method string) bool { return method != "WATCH" }
	get := func(method string) bool { return method == "GET" }
	answer := func(status int) rule { return rule{Action: "answer", Status: status} }
	return []fault{
		{name: "403", rule: answer(403), on: each},
		{name: "409", rule: answer(409), on: plain},
		{name: "410", rule: answer(410), on: watch},
		{name: "429", rule: rule{Action: "answer", Status: 429, RetryAfter: retryAfter}, on: each},
		{name: "500", rule: answer(500), on: each},
		{name: "503", rule: answer(503), on: each},
		{name: "504", rule: answer(504), on: each},
		{name: "504-after", rule: rule{Action: "answer", Status: 504, Effect: true}, on: write},
		{name: "cut-before", rule: rule{Action: "cut"}, on: each},
		{name: "cut-after", rule: rule{Action: "cut", Effect: true}, on: each},
		{name: "delay", rule: rule{Action: "delay", Delay: "10s"}, on: each},
		{name: "stale", rule: rule{Action: "stale"}, on: get},
		{name: "watch-410", rule: rule{Action: "expire-watch"}, on: watch},
		{name: "watch-end", rule: rule{Action: "end-watch"}, on: watch},
		{name: "watch-cut", rule: rule{Action: "cut-watch", Events: 1}, on: watch},
		{name: "outage", rule: rule{Action: "answer", Status: 503, Times: -1}, on: each, lasting: true},
		// Held back, so that it is certain what had been sent by then.
		{name: "kill", rule: rule{Action: "delay", Delay: "1h"}, on: each, kills: true},
		{name: "int", rule: rule{Action: "delay", Delay: "1h"}, on: each, interrupts: 1},
		{name: "int-twice", rule: rule{Action: "delay", Delay: "1h"}, on: each, interrupts: 2},
	}
}

// of says whether the fault belongs to an operation. Looks have nothing that a
// kill could leave; and Terraform is interrupted in one operation of each kind.
func (f fault) of(o operation) bool {
	switch {
	case f.kills:
		return o.kind != looks
	case f.interrupts > 0:
		return slices.Contains([]string{"create", "class", "rotation", "delete"}, o.name)
	}
	return true
}
