package vm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
)

// EnsureVolume implements guest.Backend: a sparse file, or for a root disk a
// layer above the image.
func (b *Backend) EnsureVolume(ctx context.Context, v guest.Volume) error {
	path := b.path(v)
	sizes := path + ".bytes" // of a qcow2 file the length says nothing
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		arguments := []string{"create", "-q", "-f", "raw", path, strconv.FormatInt(v.Bytes, 10)}
		if v.FromImage {
			arguments = []string{"create", "-q", "-f", "qcow2", "-F", "raw", "-b", b.Image.Disk, path, strconv.FormatInt(v.Bytes, 10)}
		}
		if err := qemuImg(ctx, arguments...); err != nil {
			return fmt.Errorf("create volume %s: %w", v.Name, err)
		}
		return writeSize(sizes, v.Bytes)
	}
	now, err := readSize(sizes)
	if err != nil {
		return fmt.Errorf("look at volume %s: %w", v.Name, err)
	}
	if now >= v.Bytes {
		return nil
	}
	if err := b.grow(ctx, v, path); err != nil {
		return fmt.Errorf("grow volume %s: %w", v.Name, err)
	}
	return writeSize(sizes, v.Bytes)
}

// DeleteVolume implements guest.Backend.
func (b *Backend) DeleteVolume(_ context.Context, name string) error {
	for _, fromImage := range []bool{false, true} {
		path := b.path(guest.Volume{Name: name, FromImage: fromImage})
		for _, file := range []string{path, path + ".bytes"} {
			if err := os.RemoveAll(file); err != nil {
				return fmt.Errorf("delete volume %s: %w", name, err)
			}
		}
	}
	return nil
}

// grow enlarges the volume, through QEMU where one has it open.
func (b *Backend) grow(ctx context.Context, v guest.Volume, path string) error {
	if user, runs := b.User(v.Name).(*machine); runs {
		return user.grow(ctx, v)
	}
	format := "raw"
	if v.FromImage {
		format = "qcow2"
	}
	return qemuImg(ctx, "resize", "-q", "-f", format, path, strconv.FormatInt(v.Bytes, 10))
}

func (b *Backend) path(v guest.Volume) string {
	suffix := ".img"
	if v.FromImage {
		suffix = ".qcow2"
	}
	return b.Volume(v.Name + suffix)
}

func readSize(path string) (int64, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(content), 10, 64)
}

func writeSize(path string, bytes int64) error {
	return os.WriteFile(path, strconv.AppendInt(nil, bytes, 10), 0o644)
}

func qemuImg(ctx context.Context, arguments ...string) error {
	if out, err := exec.CommandContext(ctx, "qemu-img", arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("run qemu-img %s: %w: %s", arguments[0], err, out)
	}
	return nil
}
