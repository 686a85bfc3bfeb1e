package labtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
)

// Traces lists what exists of the lab in a folder, outside of its files:
// processes, mounts, loop devices, and, if it has a network, links and named
// network namespaces. After `lab down` there must be none.
func Traces(folder string, network int) ([]string, error) {
	traces := append(processes(folder), loops(folder)...)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, " "+folder+"/") {
			traces = append(traces, "mount: "+strings.TrimSpace(line))
		}
	}
	if network == 0 {
		return traces, nil
	}
	links, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	prefix := fmt.Sprintf("dbaaslab%d", network)
	ours := func(name string) bool {
		rest, found := strings.CutPrefix(name, prefix)
		return found && (rest == "" || rest[0] < '0' || rest[0] > '9') // not those of network 12 for 1
	}
	for _, link := range links {
		if ours(link.Attrs().Name) {
			traces = append(traces, "link: "+link.Attrs().Name)
		}
	}
	spaces, err := filepath.Glob("/run/netns/" + prefix + "*")
	if err != nil {
		return nil, err
	}
	for _, space := range spaces {
		if ours(filepath.Base(space)) {
			traces = append(traces, "namespace: "+space)
		}
	}
	return traces, nil
}

// processes lists those that run a program of the folder or name it on their
// command line, but not the one that asks.
func processes(folder string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is good
	for _, file := range files {
		command, err := os.ReadFile(file)
		if err != nil || filepath.Dir(file) == fmt.Sprintf("/proc/%d", os.Getpid()) {
			continue // it has ended meanwhile, or it is us
		}
		program, _ := os.Readlink(filepath.Join(filepath.Dir(file), "exe"))
		if strings.HasPrefix(program, folder+"/") || bytes.Contains(command, []byte(folder+"/")) || bytes.HasSuffix(bytes.TrimRight(command, "\x00"), []byte(folder)) {
			found = append(found, "process: "+strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return found
}

func loops(folder string) []string {
	var found []string
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file") // the pattern is good
	for _, file := range files {
		backing, err := os.ReadFile(file)
		if err == nil && strings.HasPrefix(string(backing), folder+"/") {
			found = append(found, "loop device: "+file+" of "+strings.TrimSpace(string(backing)))
		}
	}
	return found
}
