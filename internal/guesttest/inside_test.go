package guesttest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// inside runs a command in the container that is the instance's machine, and
// returns what it prints and whether it succeeded. It does not go through the
// guest's agent, so nothing in the guest logs it.
func (l *lab) inside(t *testing.T, name string, command ...string) (string, bool) {
	t.Helper()
	vmi, err := l.vmi(t.Context(), name)
	must(t, err)
	if vmi == nil {
		t.Fatal("no machine runs")
	}
	arguments := append([]string{"--target", l.first(t, string(vmi.GetUID())), "--all", "--wd=/", "--"}, command...)
	cmd := exec.CommandContext(t.Context(), "nsenter", arguments...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"}
	out, err := cmd.CombinedOutput()
	if exit, failed := errors.AsType[*exec.ExitError](err); err != nil && (!failed || !exit.Exited()) {
		t.Fatalf("run %s in the guest: %v: %s", command[0], err, out)
	}
	return strings.TrimSpace(string(out)), err == nil
}

// first is the process id of the guest's first process: the child of its nspawn
// that is in a namespace of its own.
func (l *lab) first(t *testing.T, uid string) string {
	t.Helper()
	var pid string
	until(t, func(context.Context) error {
		lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			return err
		}
		for _, line := range lines {
			text, err := os.ReadFile(line)
			if err != nil || !strings.Contains(string(text), "\x00--machine=guest-"+uid+"\x00") {
				continue // a process that has ended, or another
			}
			folder := filepath.Dir(line)
			outer, err := os.Readlink(filepath.Join(folder, "ns/pid"))
			if err != nil {
				continue
			}
			children, err := os.ReadFile(filepath.Join(folder, "task", filepath.Base(folder), "children"))
			if err != nil {
				continue
			}
			for child := range strings.FieldsSeq(string(children)) {
				if space, err := os.Readlink("/proc/" + child + "/ns/pid"); err == nil && space != outer {
					pid = child
					return nil
				}
			}
		}
		return errors.New("the guest has no first process")
	})
	return pid
}
