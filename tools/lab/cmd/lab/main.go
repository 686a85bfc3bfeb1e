// Command lab runs a Harvester control plane on one machine, with guests that
// are simulated, containers or virtual machines. See tools/lab/README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// A command is one word behind `lab`; run gets the arguments after it.
type command struct {
	name, help string
	run        func(ctx context.Context, args []string) error
}

// commands lists what `lab` can do, in the order of the help text.
func commands() []command {
	return []command{
		{"up", "start a lab; returns when it serves", up},
		{"down", "end the lab and remove all but its logs", down},
		{"status", "say what runs", status},
		{"node", "play the nodes: kubelet, virt-handler, storage, guests (a piece of the lab)", runNode},
		{"knob", "make something go wrong: NAME=VALUE, NAME-; -list explains", runKnob},
		{"reboot", "reboot the guest of NAMESPACE/NAME", toMachine("reboot")},
		{"cut", "pull the plug of NAMESPACE/NAME", toMachine("cut")},
		{"address", "give NAMESPACE/NAME another ADDRESS", toMachine("address")},
		{"replace-claim", "replace the claim NAMESPACE/NAME by a blank one", toMachine("replace-claim")},
		{"proxy", "serve the fault proxy (a piece of the lab)", runProxy},
		{"faults", "print what the fault proxy recorded, or -inject, -clear, -mark, -reset", runFaults},
		{"image", "build the guest image, or find it in the cache", runImage},
		{"packages", "serve Debian's packages to the guests (a piece of the lab)", runPackages},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 {
		for _, c := range commands() {
			if c.name == os.Args[1] {
				os.Exit(exitCode(c.run(ctx, os.Args[2:])))
			}
		}
		fmt.Fprintf(os.Stderr, "lab: there is no command %q\n", os.Args[1])
	}
	fmt.Fprintln(os.Stderr, "usage: lab COMMAND [-dir FOLDER] ...")
	for _, c := range commands() {
		fmt.Fprintf(os.Stderr, "  %-12s %s\n", c.name, c.help)
	}
	os.Exit(2)
}

func exitCode(err error) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	default:
		fmt.Fprintln(os.Stderr, "lab:", err)
		return 1
	}
}
