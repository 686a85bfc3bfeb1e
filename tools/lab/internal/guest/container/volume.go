package container

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
)

// A root is a volume made from the image: what its guests wrote, above the
// image's layers. Its size is only noted, not enforced.
type root struct {
	// Layers are those of the image that the volume was made from.
	Layers []string `json:"layers"`
	Bytes  int64    `json:"bytes"`
}

// EnsureVolume implements guest.Backend. A blank volume is a sparse file.
func (b *Backend) EnsureVolume(_ context.Context, v guest.Volume) error {
	if v.FromImage {
		return b.ensureRoot(v)
	}
	path := b.file(v.Name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("create volume: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("look at volume: %w", err)
	}
	if info.Size() >= v.Bytes {
		return nil
	}
	if err := f.Truncate(v.Bytes); err != nil {
		return fmt.Errorf("grow volume %s: %w", v.Name, err)
	}
	return b.grown(v.Name)
}

// DeleteVolume implements guest.Backend.
func (b *Backend) DeleteVolume(_ context.Context, name string) error {
	for _, path := range []string{b.file(name), b.folder(name)} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("delete volume %s: %w", name, err)
		}
	}
	return nil
}

func (b *Backend) ensureRoot(v guest.Volume) error {
	folder := b.folder(v.Name)
	r, err := readRoot(folder)
	if os.IsNotExist(err) {
		r, err = root{Layers: b.Image.Layers}, os.MkdirAll(filepath.Join(folder, "upper"), 0o755)
	}
	if err != nil {
		return fmt.Errorf("create volume %s: %w", v.Name, err)
	}
	if r.Bytes >= v.Bytes {
		return nil
	}
	r.Bytes = v.Bytes
	content, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("note volume %s: %w", v.Name, err)
	}
	return os.WriteFile(filepath.Join(folder, "volume.json"), content, 0o644)
}

func readRoot(folder string) (root, error) {
	var r root
	content, err := os.ReadFile(filepath.Join(folder, "volume.json"))
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(content, &r)
}

// grown tells the machine that runs with the volume, if any.
func (b *Backend) grown(volume string) error {
	if user, runs := b.User(volume).(*machine); runs {
		return user.grown(volume)
	}
	return nil
}

func (b *Backend) file(volume string) string { return b.Volume(volume + ".img") }

func (b *Backend) folder(volume string) string { return b.Volume(volume) }
