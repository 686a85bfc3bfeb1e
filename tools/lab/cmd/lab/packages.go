package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/network"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/packages"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/state"
)

// runPackages is the daemon that leads the lab's guests to Debian's packages.
func runPackages(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("packages", flag.ContinueOnError)
	dir := flags.String("dir", ".lab", "the lab's folder")
	if err := flags.Parse(args); err != nil {
		return err
	}
	folder := state.Dir(*dir)
	lab, err := folder.Load()
	if err != nil {
		return err
	}
	mirrors, err := packages.HostMirrors(ctx)
	if err != nil {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("find the user's cache folder: %w", err)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	proxy := &packages.Proxy{
		Mirrors: mirrors,
		Cache:   filepath.Join(cache, "terraform-provider-dbaas", "lab", "packages"),
		Down:    folder.Path("run", "packages.down"),
		Log:     log,
	}
	address := netip.AddrPortFrom(network.Host(lab.Network), uint16(lab.Ports["packages"]))
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address.String())
	if err != nil {
		return fmt.Errorf("listen for guests: %w", err)
	}
	log.Info("serving packages", "address", address.String(), "archive", mirrors.Archive.String())
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve packages: %w", err)
	}
	return nil
}
