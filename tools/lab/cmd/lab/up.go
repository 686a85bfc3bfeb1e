package main

import (
	"context"
	"flag"
	"os"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/stack"
)

// defaultDir is the lab's folder where a command names none.
const defaultDir = ".lab"

func up(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("lab up", flag.ContinueOnError)
	dir := flags.String("dir", defaultDir, "folder of the lab")
	kind := flags.String("guest", string(guest.Sim), "what machines are: sim, container or vm")
	root := flags.String("root", ".", "folder of the repository")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return stack.Up(ctx, stack.Options{Dir: *dir, Root: *root, Guest: guest.Kind(*kind), Out: os.Stdout})
}

func down(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("lab down", flag.ContinueOnError)
	dir := flags.String("dir", defaultDir, "folder of the lab")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return stack.Down(*dir, os.Stdout)
}

func status(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("lab status", flag.ContinueOnError)
	dir := flags.String("dir", defaultDir, "folder of the lab")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return stack.Status(*dir, os.Stdout)
}
