package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Control returns the handler that Client talks to. It has no credentials and
// belongs on a loopback address.
func (p *Proxy) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /record", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(p.Record()) // a client that left is not our problem
	})
	mux.HandleFunc("POST /rules", func(w http.ResponseWriter, r *http.Request) {
		rule, err := ParseRule(r.Body)
		if err == nil {
			err = p.Inject(rule)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	mux.HandleFunc("DELETE /rules", func(http.ResponseWriter, *http.Request) { p.Clear() })
	mux.HandleFunc("POST /mark", func(http.ResponseWriter, *http.Request) { p.Mark() })
	mux.HandleFunc("POST /reset", func(http.ResponseWriter, *http.Request) { p.Reset() })
	return mux
}

// ParseRule reads one rule in JSON and refuses fields that it does not know:
// a misspelt one would make another fault than was meant.
func ParseRule(r io.Reader) (Rule, error) {
	var rule Rule
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&rule); err != nil {
		return rule, fmt.Errorf("parse rule: %w", err)
	}
	return rule, nil
}

// Client drives a proxy in another process.
type Client struct {
	// URL is where the Control handler is served.
	URL string
}

// Record is Proxy.Record.
func (c Client) Record(ctx context.Context) (Record, error) {
	b, err := c.do(ctx, http.MethodGet, "/record", nil)
	if err != nil {
		return nil, err
	}
	var r Record
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("parse record: %w", err)
	}
	return r, nil
}

// Inject is Proxy.Inject.
func (c Client) Inject(ctx context.Context, r Rule) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write rule: %w", err)
	}
	_, err = c.do(ctx, http.MethodPost, "/rules", b)
	return err
}

// Clear is Proxy.Clear.
func (c Client) Clear(ctx context.Context) error {
	_, err := c.do(ctx, http.MethodDelete, "/rules", nil)
	return err
}

// Mark is Proxy.Mark.
func (c Client) Mark(ctx context.Context) error {
	_, err := c.do(ctx, http.MethodPost, "/mark", nil)
	return err
}

// Reset is Proxy.Reset.
func (c Client) Reset(ctx context.Context) error {
	_, err := c.do(ctx, http.MethodPost, "/reset", nil)
	return err
}

func (c Client) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask the fault proxy: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the fault proxy: %w", err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask the fault proxy: %w", err)
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("ask the fault proxy: %s", strings.TrimSpace(string(b)))
	}
	return b, nil
}
