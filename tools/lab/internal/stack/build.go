package stack

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/gobuild"
)

// kubernetes is the version that the linked API server says it is; it must be
// that of k8s.io/kubernetes in go.mod.
var kubernetes = [...]string{"1", "33", "13"} //nolint:gochecknoglobals // a constant; Go has none of this type

// announce is after how many compiled packages a build prints a line.
const announce = 100

// binary is the path of one of the lab's binaries.
func (s *Stack) binary(name string) string { return s.dir.Path("bin", name) }

// build brings the binaries up to date in the cache, where Go's own cache
// decides what there is to do, and links them into the lab's folder: there they
// stay as they are while another lab builds newer ones.
func (s *Stack) build(ctx context.Context) error {
	cached := filepath.Join(s.cache, "bin")
	if err := os.MkdirAll(cached, 0o755); err != nil {
		return err
	}
	unlock, err := lock(filepath.Join(cached, ".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	begin := time.Now()
	const component = "k8s.io/component-base/version."
	flags := fmt.Sprintf("-s -w -X %[1]sgitVersion=v%[2]s.%[3]s.%[4]s -X %[1]sgitMajor=%[2]s -X %[1]sgitMinor=%[3]s",
		component, kubernetes[0], kubernetes[1], kubernetes[2])
	cmd := gobuild.Command(ctx, s.root, "-v", "-ldflags", flags, "-o", cached+"/", "./cmd/controlplane", "./cmd/virt-api")
	if err := s.compile(cmd); err != nil {
		return fmt.Errorf("build the control plane: %w", err)
	}
	if err := os.MkdirAll(s.dir.Path("bin"), 0o755); err != nil {
		return err
	}
	for _, name := range []string{"controlplane", "virt-api"} {
		if err := link(filepath.Join(cached, name), s.binary(name)); err != nil {
			return err
		}
	}
	own, err := os.Executable()
	if err != nil {
		return err
	}
	if err := link(own, s.binary("lab")); err != nil {
		return err
	}
	s.say("binaries are up to date (%s)", short(time.Since(begin)))
	return nil
}

// compile runs go build -v, which names each package that it compiles, and
// prints how far it is.
func (s *Stack) compile(cmd *exec.Cmd) error {
	names, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var said bytes.Buffer
	compiled := 0
	for lines := bufio.NewScanner(names); lines.Scan(); {
		line := lines.Text()
		if strings.ContainsAny(line, " :") { // an error, not the name of a package
			fmt.Fprintln(&said, line)
			continue
		}
		if compiled == 0 {
			s.say("building the control plane: some 3,300 packages; minutes the first time, seconds later")
		}
		if compiled++; compiled%announce == 0 {
			s.say("compiled %d packages, now %s", compiled, line)
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w\n%s", err, said.Bytes())
	}
	return nil
}

// lock waits until no other lab builds.
func lock(file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", file, err), f.Close())
	}
	return func() { _ = f.Close() }, nil // closing it unlocks it
}

// link makes to the same file as from, or a copy on another file system.
func link(from, to string) error {
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
