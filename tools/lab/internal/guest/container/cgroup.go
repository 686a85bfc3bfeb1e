package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/network"
)

// Each guest has a control group of its own below the lab's: nspawn names its
// children "payload" and "supervisor", and two guests in one group would manage,
// and end, each other's services.

// groups is the folder of this process's control group (version 2), and the
// folders of the same path in what else is mounted: where systemd's own
// hierarchy of version 1 is, nspawn follows there.
func groups() (group string, others []string, err error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", nil, fmt.Errorf("read mounts: %w", err)
	}
	content, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", nil, fmt.Errorf("read control group: %w", err)
	}
	own := ""
	for line := range strings.Lines(string(content)) {
		if path, found := strings.CutPrefix(strings.TrimSpace(line), "0::"); found {
			own = path
		}
	}
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		switch {
		case len(fields) < 5:
		case strings.HasPrefix(after, "cgroup2 ") && group == "":
			group = filepath.Join(fields[4], own)
		case strings.HasPrefix(after, "cgroup "):
			others = append(others, filepath.Join(fields[4], own))
		}
	}
	if group == "" {
		return "", nil, errors.New("find control groups: no cgroup2 file system is mounted")
	}
	return group, others, nil
}

// groupName is what the folders of network n's guests start with.
func groupName(n int) string { return network.Bridge(n) + "-" }

// addGroup makes a group for one guest.
func addGroup(n int, uid string) (string, error) {
	parent, _, err := groups()
	if err != nil {
		return "", err
	}
	group := filepath.Join(parent, groupName(n)+uid)
	if err := os.Mkdir(group, 0o755); err != nil {
		return "", fmt.Errorf("create control group: %w", err)
	}
	return group, nil
}

// killGroup ends every process of the group at once.
func killGroup(group string) error {
	err := os.WriteFile(filepath.Join(group, "cgroup.kill"), []byte("1"), 0o200)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("kill control group: %w", err)
	}
	return nil
}

// removeGroup returns once the group's last process has gone and it is removed.
func removeGroup(ctx context.Context, group string) error {
	parent, others, err := groups()
	if err != nil {
		return err
	}
	name, err := filepath.Rel(parent, group)
	if err != nil {
		return fmt.Errorf("find control groups: %w", err)
	}
	for _, folder := range append([]string{parent}, others...) {
		for {
			err := removeTree(filepath.Join(folder, name))
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("remove control group: %w", err)
			case <-time.After(5 * time.Millisecond): // rmdir is the only way to learn it
			}
		}
	}
	return nil
}

// removeTree removes a group and those below it, the deepest first.
func removeTree(group string) error {
	var folders []string
	err := filepath.WalkDir(group, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			folders = append(folders, path)
		}
		return nil // a group may vanish on the way
	})
	for _, folder := range slices.Backward(folders) {
		if failed := syscall.Rmdir(folder); failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, &fs.PathError{Op: "remove", Path: folder, Err: failed})
		}
	}
	return err
}

// Sweep ends guests of network n that a killed lab left, and their groups.
// Everything else of them goes with their processes.
func Sweep(n int) error {
	parent, others, err := groups()
	if err != nil {
		return err
	}
	left := map[string]bool{}
	for _, folder := range append([]string{parent}, others...) {
		found, err := filepath.Glob(filepath.Join(folder, groupName(n)+"*"))
		if err != nil {
			return fmt.Errorf("find control groups: %w", err)
		}
		for _, path := range found {
			left[filepath.Base(path)] = true
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	var problems []error
	for name := range left {
		group := filepath.Join(parent, name)
		problems = append(problems, killGroup(group), removeGroup(ctx, group))
	}
	return errors.Join(problems...)
}
