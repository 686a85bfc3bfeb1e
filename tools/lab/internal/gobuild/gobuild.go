// Package gobuild says how the lab is compiled.
//
// Nearly all of a cold start is compiling. Without inlining and without debug
// information it takes 70 % of the time; a test cluster's control plane
// has no need of the speed, and nobody debugs it. The standard library keeps its
// own flags, since everything else that is built on the machine shares it.
package gobuild

import (
	"context"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// flags has one flag a line. GNUmakefile reads it too: whatever is compiled with
// other flags, be it a test, compiles all that it shares a second time.
//
//go:embed flags
var flags string

// Command is `go build` in the lab's module, which is below root.
func Command(ctx context.Context, root string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build"}, strings.Split(strings.TrimSpace(flags), "\n")...), args...)...)
	cmd.Dir = filepath.Join(root, "tools", "lab")
	// With cgo everything would be compiled a second time.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return cmd
}
