package lab_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubevirt "kubevirt.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/process"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/state"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/labtest"
)

func TestTwentyStartsAndStopsOfAMachineLeaveNothing(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	m := lab.Create(t, labtest.Machine{Name: labtest.Name(t), Halted: true})
	awaitPrinted(t, lab, m, kubevirt.VirtualMachineStatusStopped)
	before := traces(t, lab.Dir)
	for range 20 {
		call(t, lab, m, "start")
		labtest.Wait(t, lab, m.VMI(), "the phase Running", func(i *kubevirt.VirtualMachineInstance) bool { return i.Status.Phase == kubevirt.Running })
		awaitPrinted(t, lab, m, kubevirt.VirtualMachineStatusRunning)
		call(t, lab, m, "stop")
		lab.WaitGone(t, m.VMI())
		awaitPrinted(t, lab, m, kubevirt.VirtualMachineStatusStopped)
	}
	if diff := cmp.Diff(before, traces(t, lab.Dir)); diff != "" {
		t.Errorf("-before +after\n%s", diff)
	}
}

// Another lab beside the one that other tests use: it starts, says so, refuses
// to become another, survives the loss of its node agent, and goes.
func TestALabStartsBesideAnotherAndGoesWithoutATrace(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	dir := state.Dir(t.TempDir())
	run := func(args ...string) (string, error) {
		args = append(args[:1:1], append([]string{"-dir", string(dir)}, args[1:]...)...)
		out, err := exec.CommandContext(context.WithoutCancel(t.Context()), lab.Binary(), args...).CombinedOutput()
		return string(out), err
	}
	t.Cleanup(func() {
		if out, err := run("down"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		if left := traces(t, dir); len(left) > 0 {
			t.Errorf("after down there is left:\n%s", strings.Join(left, "\n"))
		}
	})
	up := []string{"up", "-guest", "sim", "-root", "../.."}
	if out, err := run(up...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := run("status"); err != nil {
		t.Errorf("status of a running lab: %v\n%s", err, out)
	}
	first := pid(t, dir, "kube-apiserver")
	if out, err := run(up...); err != nil || !strings.Contains(out, "already serves") {
		t.Errorf("up on a running lab: %v\n%s", err, out)
	}
	if out, err := run("up", "-guest", "vm", "-root", "../.."); err == nil || !strings.Contains(out, "end it first") {
		t.Errorf("up with another guest: %v\n%s", err, out)
	}
	if second := pid(t, dir, "kube-apiserver"); second != first {
		t.Errorf("the API server was process %d and is %d", first, second)
	}

	if err := syscall.Kill(pid(t, dir, "node"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if out, err := run("status"); err == nil || !strings.Contains(out, "node") {
		t.Errorf("status without the node agent: %v\n%s", err, out)
	}
	if out, err := run("down"); err != nil {
		t.Errorf("down: %v\n%s", err, out)
	}
	if _, err := os.Stat(dir.Path("lab.json")); err == nil {
		t.Error("after down the lab's record is still there")
	}
	if out, err := run("down"); err != nil {
		t.Errorf("down without a lab: %v\n%s", err, out)
	}
}

func traces(t *testing.T, dir state.Dir) []string {
	t.Helper()
	network := 0
	if record, err := dir.Load(); err == nil {
		network = record.Network
	}
	found, err := labtest.Traces(string(dir), network)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func pid(t *testing.T, dir state.Dir, piece string) int {
	t.Helper()
	pid, running, err := process.Find(dir.Path("run"), piece)
	if err == nil && !running {
		err = fmt.Errorf("it does not run; see %s", dir.Log(piece))
	}
	if err != nil {
		t.Fatalf("find %s: %v", piece, err)
	}
	return pid
}
