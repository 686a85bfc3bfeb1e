package stack

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/process"
)

// between is the pause between two questions whether a piece is ready.
const between = 50 * time.Millisecond

// piece starts a process and returns once ready says nil. If the process ends
// before that, or the context does, the error holds the end of its log.
func (s *Stack) piece(ctx context.Context, spec process.Spec, ready func(context.Context) error) error {
	begin := time.Now()
	p, err := process.Start(spec)
	if err != nil {
		return err
	}
	for {
		last := ready(ctx)
		if last == nil {
			s.say("%s ready after %s", spec.Name, short(time.Since(begin)))
			return nil
		}
		select {
		case <-p.Ended():
			return fmt.Errorf("it ended (%s)\n%s", p, tail(spec.Log))
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("it did not get ready in time: %w\n%s", last, tail(spec.Log))
			}
			return ctx.Err()
		case <-time.After(between):
		}
	}
}

// tail is the end of a log, for an error message.
func tail(log string) string {
	const lines = 15
	text, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return fmt.Sprintf("the last lines of %s:\n  %s", log, strings.Join(all[max(0, len(all)-lines):], "\n  "))
}

// answers makes a question for piece: does a GET of url answer with status 200
// and a body that contains text? The admin's token goes with it.
func (s *Stack) answers(url, text string) func(context.Context) error {
	connect := sync.OnceValues(s.web)
	return func(ctx context.Context) error {
		web, err := connect()
		if err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+web.token)
		response, err := web.client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK || !strings.Contains(string(body), text) {
			return fmt.Errorf("%s answers %s: %.200s", url, response.Status, body)
		}
		return nil
	}
}

// web is a client that trusts the lab's authority, and the admin's token.
type web struct {
	client *http.Client
	token  string
}

func (s *Stack) web() (*web, error) {
	authority, err := os.ReadFile(s.dir.PKI("ca.crt"))
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(s.dir.PKI("admin.token"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	client := &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}},
	}
	return &web{client, string(token)}, nil
}

func short(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
