package faulttest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// A provider that is to be killed runs in a process of its own: this test's
// program, started once more.
const childVariable = "DBAAS_FAULTTEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	if err := child(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// killed is what is said of a provider that had no chance to say anything.
const killed = "killed"

// job is what the child is to apply.
type job struct {
	Kubeconfig string
	Object     *object
	Wanted     wish
}

// report is what the child says: first that it has planned, in the end what
// the provider returned.
type report struct {
	Planned bool
	Object  *object
	Said    *verdicts
}

func child(in io.Reader, out io.Writer) error {
	var j job
	orders, news := json.NewDecoder(in), json.NewEncoder(out)
	if err := orders.Decode(&j); err != nil {
		return err
	}
	w := &worker{core: core{kubeconfig: j.Kubeconfig}}
	after, said, err := w.apply(context.Background(), j.Object, j.Wanted, func() error {
		if err := news.Encode(report{Planned: true}); err != nil {
			return err
		}
		var goOn bool
		return orders.Decode(&goOn)
	})
	if err != nil {
		return err
	}
	return news.Encode(report{Object: after, Said: said})
}

// kill applies in a process that is killed as soon as a request is held
// back. As in core, what the state held is then what it holds. If the request
// does not come, the result is the provider's.
func (w *worker) kill(ctx context.Context, o *object, wanted wish, ready func() error) (*object, *verdicts, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	command := exec.CommandContext(ctx, os.Args[0])
	command.Env = append(os.Environ(), childVariable+"=1")
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return o, &verdicts{}, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return o, &verdicts{}, err
	}
	if err := command.Start(); err != nil {
		return o, &verdicts{}, err
	}
	defer func() { stop(); _ = command.Wait() }() // it was killed, or has said all
	orders, news := json.NewEncoder(in), json.NewDecoder(bufio.NewReader(out))
	if err := orders.Encode(job{w.core.kubeconfig, o, wanted}); err != nil {
		return o, &verdicts{}, err
	}
	var said report
	if err := news.Decode(&said); err != nil {
		return o, &verdicts{}, fmt.Errorf("the child's plan: %w", err)
	}
	if !said.Planned {
		return said.Object, said.Said, nil
	}
	if err := errors.Join(ready(), orders.Encode(true)); err != nil {
		return o, &verdicts{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- news.Decode(&said) }()
	for {
		select {
		case err := <-ended:
			return said.Object, said.Said, err
		case <-time.After(20 * time.Millisecond):
		}
		record, err := w.proxy.Record()
		if err != nil {
			return o, &verdicts{}, err
		}
		for _, r := range record {
			if r.Fault != "" {
				return o, &verdicts{Errors: []string{killed}}, nil
			}
		}
	}
}
