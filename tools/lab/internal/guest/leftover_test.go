package guest_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/container"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/network"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/sample"
)

func TestContainerCyclesLeaveNothing(t *testing.T) {
	s := newSite(t, guest.Container, "baked")
	s.volumes(t, "root", "data")
	for i := range 20 {
		m := s.boot(t, s.spec(fmt.Sprintf("uid-%d", i), "root", "data"))
		if i%2 == 0 { // one half is cut off at once, the other shut down in the middle of booting
			if err := m.Kill(); err != nil {
				t.Fatal(err)
			}
		} else if err := m.Shutdown(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		if exit := ended(t, m); exit.Failed || strings.Contains(exit.Reason, ";") {
			t.Fatalf("cycle %d: %+v\n%s", i, exit, console(m))
		}
		nothingLeft(t, s.dir, s.network)
	}
}

func TestContainersDieWithTheirLab(t *testing.T) { dieWithLab(t, guest.Container) }

func TestVMsDieWithTheirLab(t *testing.T) { dieWithLab(t, guest.VM) }

// dieWithLab kills, as SIGKILL does, a process that runs a guest: this test's
// own program in another role (see TestMain).
func dieWithLab(t *testing.T, kind guest.Kind) {
	s := newSite(t, kind, "baked")
	s.volumes(t, "root", "data")
	if err := s.Close(); err != nil { // the child serves this network
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), "LAB_TEST_CHILD="+s.dir, "LAB_TEST_KIND="+string(kind), fmt.Sprintf("LAB_TEST_NETWORK=%d", s.network))
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "running\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // killed, as said
	deadline := time.Now().Add(time.Minute)
	busy := func() []string { // empty control groups are no burden, and swept later
		return slices.DeleteFunc(leftovers(t, s.dir, s.network), func(left string) bool {
			return strings.HasPrefix(left, "control group")
		})
	}
	for len(busy()) > 0 && time.Now().Before(deadline) {
		<-time.After(10 * time.Millisecond) // the kernel clears up behind the processes
	}
	if left := busy(); len(left) > 0 {
		t.Errorf("left behind without a sweep: %q", left)
	}
	if err := container.Sweep(s.network); err != nil {
		t.Error(err)
	}
	nothingLeft(t, s.dir, s.network)
}

// TestMain is also the child of dieWithLab.
func TestMain(m *testing.M) {
	if dir := os.Getenv("LAB_TEST_CHILD"); dir != "" {
		child(dir)
		return
	}
	os.Exit(m.Run())
}

// child boots a guest and waits to be killed.
func child(dir string) {
	s := &site{kind: guest.Kind(os.Getenv("LAB_TEST_KIND")), dir: dir, document: sample.Document{UserData: []byte("#cloud-config\n")}}
	if _, err := fmt.Sscan(os.Getenv("LAB_TEST_NETWORK"), &s.network); err != nil {
		panic(err)
	}
	ctx := context.Background()
	backend, err := open(ctx, s.kind, options(dir, s.network, "baked"))
	if err != nil {
		panic(err)
	}
	machine, err := backend.Boot(ctx, s.spec("uid", "root", "data"))
	if err != nil {
		panic(err)
	}
	for { // far enough to have mounts and services of its own
		content, err := os.ReadFile(machine.ConsoleLog())
		if err == nil && len(content) > 0 {
			break
		}
		<-time.After(50 * time.Millisecond)
	}
	fmt.Println("running")
	<-machine.Done()
}

func nothingLeft(t *testing.T, dir string, n int) {
	t.Helper()
	for _, left := range leftovers(t, dir, n) {
		t.Error("left behind: " + left)
	}
}

// leftovers are processes, mounts, loop devices, links and control groups of
// guests; the bridge belongs to the lab.
func leftovers(t *testing.T, dir string, n int) []string {
	t.Helper()
	var out []string
	add := func(kind string, found []string) {
		for _, f := range found {
			out = append(out, kind+" "+f)
		}
	}
	add("process", processes(dir))
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, dir) {
			out = append(out, "mount "+line)
		}
	}
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, file := range files {
		if content, err := os.ReadFile(file); err == nil && strings.Contains(string(content), dir) {
			out = append(out, "loop device "+file+" "+string(content))
		}
	}
	links, _ := filepath.Glob("/sys/class/net/" + network.Bridge(n) + "g*")
	add("link", links)
	for _, pattern := range []string{"/sys/fs/cgroup/%s-*", "/sys/fs/cgroup/*/%s-*", "/sys/fs/cgroup/*/*/%s-*", "/sys/fs/cgroup/*/*/*/%s-*"} {
		groups, _ := filepath.Glob(fmt.Sprintf(pattern, network.Bridge(n)))
		add("control group", groups)
	}
	return out
}

// processes are those that have the lab's folder in their command line.
func processes(dir string) []string {
	var out []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(content), dir) {
			out = append(out, file+" "+strings.ReplaceAll(string(content), "\x00", " "))
		}
	}
	return out
}
