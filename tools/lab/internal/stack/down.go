package stack

import (
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/process"
)

// guestGrace is how long the node agent may take to end its guests; the other
// pieces have nothing to lose.
const (
	guestGrace = 30 * time.Second
	pieceGrace = 3 * time.Second
)

// Down ends the lab and returns when nothing of it is left but its logs. It
// also clears what a lab left that was killed. No lab is no error.
func Down(dir string, out io.Writer) error {
	s, err := newStack(dir, "", out)
	if err != nil {
		return err
	}
	running, _, err := s.census()
	if err != nil {
		return err
	}
	if err := s.end(); err != nil {
		return err
	}
	if len(running) == 0 {
		s.say("no lab runs in %s", s.dir)
		return nil
	}
	s.say("the lab in %s is down; its logs stay", s.dir)
	return nil
}

// end stops the pieces, sweeps up after them and removes the lab's files.
func (s *Stack) end() error {
	if err := s.stopAll(); err != nil {
		return err
	}
	if err := s.sweep(); err != nil {
		return err
	}
	for _, name := range []string{
		"lab.json", "kubeconfig", "tenant.kubeconfig", "proxy.kubeconfig",
		"pki", "run", "bin", "etcd", "volumes", "guests",
	} {
		if err := os.RemoveAll(s.dir.Path(name)); err != nil {
			return err
		}
	}
	return nil
}

// stopAll stops the node agent first, so that it ends its guests while it still
// can, and then everything else at once.
func (s *Stack) stopAll() error {
	if err := process.Stop(s.runDir(), "node", guestGrace); err != nil {
		return err
	}
	others := slices.DeleteFunc(pieces(), func(name string) bool { return name == "node" })
	problems := make([]error, len(others))
	var all sync.WaitGroup
	for i, name := range others {
		all.Go(func() { problems[i] = process.Stop(s.runDir(), name, pieceGrace) })
	}
	all.Wait()
	return errors.Join(problems...)
}
