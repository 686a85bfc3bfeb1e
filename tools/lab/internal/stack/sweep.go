package stack

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/container"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/network"
)

// sweep removes what guests leave in the kernel when the node agent was killed:
// containers' control groups, mounts below the lab's folder, loop devices of its
// files, its network.
func (s *Stack) sweep() error {
	return errors.Join(s.sweepContainers(), unmountBelow(string(s.dir)), detachBelow(string(s.dir)), s.releaseNetwork())
}

// sweepContainers ends what is left of container guests. A lab without a record
// was killed before it had any.
func (s *Stack) sweepContainers() error {
	lab, err := s.dir.Load()
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case lab.Guest != string(guest.Container):
		return nil
	}
	return container.Sweep(lab.Network)
}

// unmountBelow unmounts everything below the folder, the innermost first.
func unmountBelow(folder string) error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	points := mountsBelow(table, folder)
	slices.Reverse(points)
	var problems []error
	for _, point := range points {
		// Lazily: a process that dies this moment may still stand in it.
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil {
			problems = append(problems, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	return errors.Join(problems...)
}

// mountsBelow lists the mount points below folder in the order of mounting.
func mountsBelow(mountinfo []byte, folder string) []string {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var points []string
	for line := range bytes.Lines(mountinfo) {
		const point = 4 // of the fields in proc_pid_mountinfo(5)
		fields := strings.Fields(string(line))
		if len(fields) <= point {
			continue
		}
		if path := unescape.Replace(fields[point]); strings.HasPrefix(path, folder+"/") {
			points = append(points, path)
		}
	}
	return points
}

// detachBelow detaches the loop devices whose files are below the folder.
func detachBelow(folder string) error {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return err
	}
	var problems []error
	for _, file := range files {
		backing, err := os.ReadFile(file)
		if err != nil { // it was detached this moment
			continue
		}
		// The kernel marks the path of a deleted file with a suffix.
		if !strings.HasPrefix(string(backing), folder+"/") {
			continue
		}
		device := "/dev/" + filepath.Base(filepath.Dir(filepath.Dir(file)))
		if err := detach(device); err != nil {
			problems = append(problems, fmt.Errorf("detach %s: %w", device, err))
		}
	}
	return errors.Join(problems...)
}

func detach(device string) error {
	f, err := os.Open(device)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.IoctlSetInt(int(f.Fd()), unix.LOOP_CLR_FD, 0); err != nil && !errors.Is(err, unix.ENXIO) {
		return err
	}
	return nil
}

// releaseNetwork gives the lab's network back. Its bridge is found by what is
// written on it: a lab killed while it started may have no record yet.
func (s *Stack) releaseNetwork() error {
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("list links: %w", err)
	}
	var problems []error
	for _, link := range links {
		var n int
		if _, err := fmt.Sscanf(link.Attrs().Name, "dbaaslab%d", &n); err != nil || link.Attrs().Name != network.Bridge(n) {
			continue
		}
		if link.Attrs().Alias == "lab "+string(s.dir) {
			problems = append(problems, network.Release(n))
		}
	}
	return errors.Join(problems...)
}
