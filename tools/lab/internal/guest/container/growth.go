package container

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// growWithin bounds the commands of a RESIZE rule.
const growWithin = time.Minute

// grown makes a running guest see a volume's new size.
func (m *machine) grown(volume string) error {
	m.mu.Lock()
	l := m.loops[volume]
	m.mu.Unlock()
	if l == nil {
		return nil
	}
	if err := l.grow(); err != nil {
		return err
	}
	for _, disk := range m.Spec.Disks {
		if disk.Volume == volume {
			go m.resized(disk.Serial)
		}
	}
	return nil
}

// resized does udev's part, which a container has not: the kernel tells of a
// grown disk by a change event with RESIZE=1, and the guest's rules for it run.
func (m *machine) resized(serial string) {
	pid, err := m.init()
	if err != nil {
		return // it will see the size when it boots
	}
	rules, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "root/etc/udev/rules.d/*.rules")) // well-formed
	ctx, cancel := context.WithTimeout(context.Background(), growWithin)
	defer cancel()
	for _, path := range rules {
		content, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for _, command := range resizeCommands(string(content), serial) {
			code, output, err := enter(ctx, pid, command)
			fmt.Fprintf(m.backend.Options.Log, "guest %s/%s: RESIZE rule ran %q: exit %d %s %v\n",
				m.Spec.Namespace, m.Spec.Name, command, code, output, err)
		}
	}
}

var (
	runKey    = regexp.MustCompile(`RUN\+?="([^"]*)"`)
	serialKey = regexp.MustCompile(`ENV\{ID_SERIAL\}=="([^"]*)"`)
)

// resizeCommands are the RUN commands of udev rules that match a grown disk.
func resizeCommands(rules, serial string) [][]string {
	var out [][]string
	for line := range strings.Lines(rules) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") || !strings.Contains(line, `ENV{RESIZE}=="1"`) {
			continue
		}
		if match := serialKey.FindStringSubmatch(line); match != nil && match[1] != serial {
			continue
		}
		for _, run := range runKey.FindAllStringSubmatch(line, -1) {
			out = append(out, strings.Fields(run[1]))
		}
	}
	return out
}
