// Package image builds the Debian 12 that a lab's guests run, once for a user's
// account: layers of a root file system, and a disk made of them for the vm.
package image

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/packages"
)

// Variant says what the image holds.
type Variant string

// Plain is like Debian's cloud image: PostgreSQL and the guest agent come from
// packages at the first boot. Baked has them.
const (
	Plain Variant = "plain"
	Baked Variant = "baked"
)

// DiskBytes is the image's virtual size.
const DiskBytes = 2 << 30

//go:embed build.sh
var recipe string

// layerPackages are what each layer above the root installs.
func layerPackages(layer string) []string {
	switch layer {
	case "baked":
		return []string{"postgresql-15", "qemu-guest-agent"}
	default: // plain-kernel, baked-kernel
		return []string{"linux-image-cloud-amd64", "initramfs-tools", "lz4", "zstd"}
	}
}

// A Request says which image is wanted.
type Request struct {
	// Cache is the lab's cache folder.
	Cache   string
	Variant Variant
	// Disk asks for kernel and disk too, which only the vm needs.
	Disk bool
	// Log receives lines of progress.
	Log io.Writer
}

// An Image is ready to boot.
type Image struct {
	// Layers are the folders of the root file system, the topmost first.
	Layers []string
	// Kernel, Initrd and Disk are files, empty if no disk was asked for. Disk is
	// an ext4 file system with the label rootfs.
	Kernel, Initrd, Disk string
}

// ParseVariant reads LAB_IMAGE; nothing means baked, which boots much faster.
func ParseVariant(s string) (Variant, error) {
	switch v := Variant(s); v {
	case "":
		return Baked, nil
	case Plain, Baked:
		return v, nil
	default:
		return "", fmt.Errorf("read image variant: %q is neither plain nor baked", s)
	}
}

// Ensure returns the image, after building what is missing of it.
func Ensure(ctx context.Context, r Request) (*Image, error) {
	mirrors, err := packages.HostMirrors(ctx)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(r.Cache, "image", key(mirrors))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("create image folder: %w", err)
	}
	unlock, err := lock(filepath.Join(folder, "lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()

	b := builder{folder: folder, mirrors: mirrors, log: r.Log}
	layers := []string{"root"}
	if r.Variant == Baked {
		layers = append(layers, "baked")
	}
	image := &Image{Layers: b.paths(layers)}
	if r.Disk {
		layers = append(layers, string(r.Variant)+"-kernel")
		disk := filepath.Join(folder, string(r.Variant)+"-disk")
		image.Kernel, image.Initrd = filepath.Join(disk, "vmlinux"), filepath.Join(disk, "initrd.img")
		image.Disk = filepath.Join(disk, "root.ext4")
	}
	for i, layer := range layers {
		if err := b.layer(ctx, layer, b.paths(layers[:i])); err != nil {
			return nil, err
		}
	}
	if r.Disk {
		err = b.step(ctx, string(r.Variant)+"-disk", "disk", strings.Join(b.paths(layers), ":"))
	}
	return image, err
}

// key names the recipe: another script, package or mirror is another image.
func key(m packages.Mirrors) string {
	h := sha256.New()
	fmt.Fprintln(h, recipe, m.Sources(false), layerPackages("baked"), layerPackages("kernel"), DiskBytes)
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// paths is the overlay's list for layers, the topmost first.
func (b *builder) paths(layers []string) []string {
	var out []string
	for _, layer := range slices.Backward(layers) {
		out = append(out, filepath.Join(b.folder, layer))
	}
	return out
}

// lock keeps two labs from building at once; the second finds the work done.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open image lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("take image lock: %w", err)
	}
	return func() { _ = f.Close() }, nil
}
