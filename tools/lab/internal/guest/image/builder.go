package image

import (
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

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/packages"
)

// progressEvery is how often a running step says that it is alive.
const progressEvery = 10 * time.Second

type builder struct {
	folder  string
	mirrors packages.Mirrors
	log     io.Writer
}

func (b *builder) layer(ctx context.Context, name string, lower []string) error {
	if len(lower) == 0 {
		return b.step(ctx, name, "root")
	}
	return b.step(ctx, name, "layer", append([]string{strings.Join(lower, ":")}, layerPackages(name)...)...)
}

// step makes folder name by one step of build.sh, unless it is there. It is
// built beside its place and renamed, so that a place holds a whole layer.
func (b *builder) step(ctx context.Context, name, step string, args ...string) error {
	place := filepath.Join(b.folder, name)
	if _, err := os.Stat(place); err == nil {
		return nil
	}
	if os.Geteuid() != 0 {
		return errors.New("build guest image: it needs root (mounts, chroot)")
	}
	draft := place + ".draft"
	for _, leftover := range []string{draft, draft + ".work", draft + ".root"} {
		if err := os.RemoveAll(leftover); err != nil { // of a build that was killed
			return fmt.Errorf("remove unfinished layer: %w", err)
		}
	}
	start := time.Now()
	log := filepath.Join(b.folder, name+".log")
	fmt.Fprintf(b.log, "image: building %s, which takes a minute or two (log: %s)\n", name, log)
	stop := b.report(name, log, start)
	err := b.run(ctx, log, append([]string{step, draft}, args...))
	stop()
	if err != nil {
		return fmt.Errorf("build guest image, layer %s: %w\n%s", name, err, tail(log, 20))
	}
	if err := os.Rename(draft, place); err != nil {
		return fmt.Errorf("keep layer %s: %w", name, err)
	}
	fmt.Fprintf(b.log, "image: built %s in %.0f s\n", name, time.Since(start).Seconds())
	return nil
}

func (b *builder) run(ctx context.Context, log string, args []string) error {
	out, err := os.Create(log)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	cmd := exec.CommandContext(ctx, "bash", append([]string{"-c", recipe, "build.sh"}, args...)...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "SOURCES="+b.mirrors.Sources(false), "GUEST="+b.mirrors.Sources(true),
		fmt.Sprintf("DISK_BYTES=%d", DiskBytes), "PROXY=")
	if b.mirrors.Proxy != nil {
		cmd.Env = append(cmd.Env, "PROXY="+b.mirrors.Proxy.String())
	}
	// A mount namespace of its own, and a process group that ends as a whole.
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd.Run()
}

// report prints where the step is from time to time, until stop is called.
func (b *builder) report(name, log string, start time.Time) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				line := strings.TrimSpace(tail(log, 1))
				fmt.Fprintf(b.log, "image: %s, %.0f s: %.100s\n", name, time.Since(start).Seconds(), line)
			}
		}
	}()
	return func() { close(done); <-ended }
}

// tail is the end of a file, for a person to read.
func tail(path string, lines int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}
