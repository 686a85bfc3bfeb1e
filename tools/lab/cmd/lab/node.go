package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/container"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/network"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/vm"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/node"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/state"
)

// runNode is the daemon that plays the lab's nodes.
func runNode(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("node", flag.ContinueOnError)
	dir := flags.String("dir", ".lab", "the lab's folder")
	kind := flags.String("guest", "", "sim, container or vm; by default what the lab was started with")
	imageGiB := flags.Int64("image-size", 2, "virtual size of the guest image in GiB")
	if err := flags.Parse(args); err != nil {
		return err
	}
	folder := state.Dir(*dir)
	lab, err := folder.Load()
	if err != nil {
		return err
	}
	if *kind == "" {
		*kind = lab.Guest
	}
	config, err := clientcmd.BuildConfigFromFlags("", folder.PKI("node.kubeconfig"))
	if err != nil {
		return fmt.Errorf("read the node agent's kubeconfig: %w", err)
	}
	backend, err := newBackend(ctx, guest.Kind(*kind), folder, lab)
	if err != nil {
		return err
	}
	return node.Run(ctx, node.Options{
		Dir: folder, Lab: lab, Kind: guest.Kind(*kind), Backend: backend, Config: config,
		ImageBytes: *imageGiB << 30, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
}

func newBackend(ctx context.Context, kind guest.Kind, folder state.Dir, lab *state.Lab) (guest.Backend, error) {
	if kind == guest.Sim {
		return guest.NewSim(folder.Path("guests")), nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find the user's cache folder: %w", err)
	}
	o := guest.Options{
		Dir: string(folder), Cache: filepath.Join(cache, "terraform-provider-dbaas", "lab"), Network: lab.Network,
		Image: os.Getenv("LAB_IMAGE"), PackageProxy: netip.AddrPortFrom(network.Host(lab.Network), uint16(lab.Ports["packages"])), Log: os.Stderr,
	}
	switch kind {
	case guest.Container:
		return container.New(ctx, o)
	case guest.VM:
		return vm.New(ctx, o)
	}
	return nil, fmt.Errorf("start guests: there is no kind %q", kind)
}
