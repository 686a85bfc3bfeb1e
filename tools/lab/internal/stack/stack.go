// Package stack knows which pieces a lab is made of: how they are built and
// started, when they serve, and how they are ended without a trace.
package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/process"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/state"
)

// Options say which lab to start.
type Options struct {
	// Dir is the lab's folder, Root the repository's.
	Dir, Root string
	Guest     guest.Kind
	// Out gets a line for each thing that happens.
	Out io.Writer
}

// A Stack is a lab's processes.
type Stack struct {
	dir   state.Dir
	root  string
	cache string
	lab   *state.Lab
	out   io.Writer
	begin time.Time
}

// pieces lists the processes in the order in which a lab needs them.
func pieces() []string {
	return []string{
		"etcd", "kube-apiserver", "kube-controller-manager", "virt-api", "virt-controller",
		"harvester", "node", "packages", "proxy",
	}
}

// startLimit bounds a start, without the build: seconds on an idle machine.
const startLimit = 20 * time.Minute

// CacheDir is where what labs share is kept: binaries, packages, images.
func CacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	return filepath.Join(cache, "terraform-provider-dbaas", "lab"), nil
}

func newStack(dir, root string, out io.Writer) (*Stack, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if root != "" {
		if root, err = filepath.Abs(root); err != nil {
			return nil, err
		}
	}
	return &Stack{dir: state.Dir(absolute), root: root, cache: cache, out: out, begin: time.Now()}, nil
}

// Up starts a lab and returns when it serves. A lab of the same kind that
// already serves is left as it is; what is left of one that was killed is
// ended first.
func Up(ctx context.Context, o Options) error {
	s, err := newStack(o.Dir, o.Root, o.Out)
	if err != nil {
		return err
	}
	if !slices.Contains([]guest.Kind{guest.Sim, guest.Container, guest.VM}, o.Guest) {
		return fmt.Errorf("start lab: there is no guest %q: sim, container or vm", o.Guest)
	}
	if serves, err := s.alreadyServes(ctx, o.Guest); serves || err != nil {
		return err
	}
	if err := s.prepare(ctx, o.Guest); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := runSteps(ctx, s.steps()); err != nil {
		s.say("the start failed; ending what was started")
		return errors.Join(err, s.end())
	}
	s.say("the lab serves: %s (admin), %s (tenant)", s.dir.Kubeconfig(), s.dir.TenantKubeconfig())
	return nil
}

// alreadyServes finds out whether there is nothing to do. It refuses to replace
// a running lab with other guests, and ends one of which a piece is missing.
func (s *Stack) alreadyServes(ctx context.Context, kind guest.Kind) (bool, error) {
	running, missing, err := s.census()
	if err != nil {
		return false, err
	}
	if len(running) == 0 {
		return false, s.end()
	}
	if s.lab, err = s.dir.Load(); err != nil {
		return false, fmt.Errorf("a lab runs in %s, but %w; end it with: lab down -dir %s", s.dir, err, s.dir)
	}
	if len(missing) > 0 {
		s.say("of the lab in %s %v do not run; starting it anew", s.dir, missing)
		return false, s.end()
	}
	if s.lab.Guest != string(kind) {
		return false, fmt.Errorf("start lab: one with the guest %s runs in %s; end it first: lab down -dir %s", s.lab.Guest, s.dir, s.dir)
	}
	if err := s.answers(s.lab.URL("apiserver")+"/readyz", "ok")(ctx); err != nil {
		return false, fmt.Errorf("start lab: the one in %s runs, but its API server does not answer: %w; end it first: lab down -dir %s", s.dir, err, s.dir)
	}
	s.say("a %s lab already serves in %s", kind, s.dir)
	return true, nil
}

// census says which pieces run, and which should but do not.
func (s *Stack) census() (running, missing []string, err error) {
	for _, name := range pieces() {
		_, runs, err := process.Find(s.runDir(), name)
		if err != nil {
			return nil, nil, err
		}
		_, err = os.Stat(filepath.Join(s.runDir(), name+".pid"))
		switch {
		case runs:
			running = append(running, name)
		case err == nil:
			missing = append(missing, name)
		}
	}
	return running, missing, nil
}

// Status prints what runs. It is an error if that is not a whole lab.
func Status(dir string, out io.Writer) error {
	s, err := newStack(dir, "", out)
	if err != nil {
		return err
	}
	lab, err := s.dir.Load()
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no lab in %s", s.dir)
	}
	if err != nil {
		return err
	}
	running, missing, err := s.census()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "guest %s, network 198.18.%d.0/24, API server %s\n", lab.Guest, lab.Network, lab.URL("apiserver"))
	for _, name := range running {
		pid, _, err := process.Find(s.runDir(), name)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "  %-24s process %d\n", name, pid)
	}
	for _, name := range missing {
		fmt.Fprintf(out, "  %-24s does not run; see %s\n", name, s.dir.Log(name))
	}
	if len(missing) > 0 {
		return fmt.Errorf("of the lab in %s, %v do not run", s.dir, missing)
	}
	return nil
}

func (s *Stack) runDir() string { return s.dir.Path("run") }

// say prints a line with the time since the start.
func (s *Stack) say(format string, args ...any) {
	fmt.Fprintf(s.out, "[%6.2fs] %s\n", time.Since(s.begin).Seconds(), fmt.Sprintf(format, args...))
}
