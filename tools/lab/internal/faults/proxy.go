// Package faults is a reverse proxy in front of an API server that records
// every request and makes chosen ones fail: see Rule for the faults and Entry
// for what is recorded.
//
// It needs nothing but the standard library and no process of its own, so a
// test can run one proxy per case; `lab proxy` runs one as a daemon.
package faults

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// Options says what a Proxy stands in front of.
type Options struct {
	// Upstream is the server's address, scheme and host.
	Upstream *url.URL
	// Transport reaches Upstream and trusts its certificate. It must add no
	// credentials: those of the client are passed through.
	Transport http.RoundTripper
}

// Proxy is an http.Handler. Serve it with the server that Server returns, or
// with one that has ConnContext: without it a cut only ends the request's
// stream, not the connection.
type Proxy struct {
	forward *httputil.ReverseProxy

	mu        sync.Mutex
	rules     []*armed
	entries   []*Entry
	index     int
	release   chan struct{} // closed when the rules go
	changed   chan struct{} // closed when the record changes
	snapshots map[string]*versions
}

// New makes a proxy without rules.
func New(o Options) *Proxy {
	p := &Proxy{
		release: make(chan struct{}), changed: make(chan struct{}), snapshots: make(map[string]*versions),
	}
	p.forward = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(o.Upstream); r.Out.Host = r.In.Host },
		Transport:      o.Transport,
		FlushInterval:  -1, // a watch's events must not wait for a full buffer
		ModifyResponse: p.answered,
		ErrorHandler:   p.unreachable,
		ErrorLog:       log.New(io.Discard, "", 0), // it would report each fault
	}
	return p
}

// Inject arms a rule. Rules are tried in the order of their injection; the
// first that is due decides about a request.
func (p *Proxy) Inject(r Rule) error {
	a, err := arm(r)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, a)
	return nil
}

// Clear removes all rules and lets go on whom they delay; the record stays.
func (p *Proxy) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

// Reset forgets rules, record and snapshots; the next request has index 1.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.entries, p.index = nil, 0
	p.snapshots = make(map[string]*versions)
}

func (p *Proxy) clear() {
	p.rules = nil
	close(p.release)
	p.release = make(chan struct{})
}

// call is one request on its way through the proxy.
type call struct {
	entry   *Entry
	rule    Rule // the one that fires, if fires
	fires   bool
	release <-chan struct{}
	stale   *snapshot
	client  *http.Request
}

type callKey struct{}

// ServeHTTP passes a request on, unless a rule has other plans for it.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := p.begin(r)
	out := &countingWriter{ResponseWriter: w, began: func(status int) { p.began(c, status) }}
	in := &countingReader{body: r.Body}
	defer func() { p.finish(c, in, out) }()
	r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	r.Body = in
	if !c.fires {
		p.forward.ServeHTTP(out, r)
		return
	}
	p.fault(c, out, r)
}

func (p *Proxy) fault(c *call, out http.ResponseWriter, r *http.Request) {
	if c.rule.Effect { // whatever the client does meanwhile
		r = r.WithContext(context.WithoutCancel(r.Context()))
	}
	if c.rule.Delay > 0 && !c.wait(r) {
		panic(http.ErrAbortHandler) // nobody waits for an answer any more
	}
	if c.rule.Effect {
		p.forward.ServeHTTP(&discard{header: http.Header{}}, r)
	}
	switch c.rule.Action {
	case Answer:
		writeStatus(out, c.rule)
	case Cut:
		cut(r.Context())
		panic(http.ErrAbortHandler)
	case Stale:
		c.stale.write(out)
	default: // Delay is over; the watch actions work on the answer
		p.forward.ServeHTTP(out, r)
	}
}

// wait holds the request back and reports whether the client still waits.
func (c *call) wait(r *http.Request) bool {
	// HTTP/1.1 notices that a client has left only once its body was read.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	t := time.NewTimer(time.Duration(c.rule.Delay))
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.release:
	case <-r.Context().Done():
		return false
	}
	return true
}

// answered sees the server's answer before the client does.
func (p *Proxy) answered(res *http.Response) error {
	c := res.Request.Context().Value(callKey{}).(*call)
	p.mu.Lock()
	c.entry.Upstream = res.StatusCode
	p.mu.Unlock()
	switch watch := c.entry.Method == Watch; {
	case watch && c.fires && c.rule.Effect:
		// A watch's answer has no end to wait for.
		_ = res.Body.Close()
		res.Body = http.NoBody
	case watch && c.fires && c.rule.Action.onStream() && res.StatusCode == http.StatusOK:
		res.Body = newStream(c, res.Body)
	case !watch && res.Request.Method == http.MethodGet:
		res.Body = p.keep(snapshotKey(c.client), res)
	}
	return nil
}

// unreachable lets a client see a server that is down as it would without the
// proxy: as a broken connection, not as an answer 502 that no API server gives.
func (p *Proxy) unreachable(_ http.ResponseWriter, r *http.Request, err error) {
	c := r.Context().Value(callKey{}).(*call)
	p.mu.Lock()
	c.entry.Error = err.Error()
	p.mu.Unlock()
	if c.rule.Effect {
		return // the rule's own answer follows
	}
	if r.Context().Err() == nil { // else it is the client that gave up
		cut(r.Context())
	}
	panic(http.ErrAbortHandler)
}
