package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/image"
)

// runImage builds the guest image into the user's cache, or finds it there.
func runImage(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	variant := flags.String("variant", os.Getenv("LAB_IMAGE"), "plain, or baked with PostgreSQL and agent (default baked)")
	disk := flags.Bool("disk", false, "make the vm's kernel and disk too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	wanted, err := image.ParseVariant(*variant)
	if err != nil {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("find the user's cache folder: %w", err)
	}
	built, err := image.Ensure(ctx, image.Request{
		Cache:   filepath.Join(cache, "terraform-provider-dbaas", "lab"),
		Variant: wanted, Disk: *disk, Log: os.Stderr,
	})
	if err != nil {
		return err
	}
	for _, layer := range built.Layers {
		fmt.Println("layer ", layer)
	}
	if *disk {
		fmt.Printf("kernel %s\ninitrd %s\ndisk   %s\n", built.Kernel, built.Initrd, built.Disk)
	}
	return nil
}
