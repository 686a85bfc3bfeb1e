package faults

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// maxEntries bounds the memory of a proxy that nobody resets; the older half
// of the record goes then.
const maxEntries = 100_000

// Entry is one request as the proxy saw it. It never holds a body.
type Entry struct {
	// Index counts requests from Reset, beginning with 1, in order of arrival.
	Index int       `json:"index"`
	Time  time.Time `json:"time"`
	// Method is the HTTP method, or WATCH for a GET that opens a watch.
	Method string `json:"method"`
	// Path includes the query.
	Path string `json:"path"`
	// Status is what the client got: 0 while there is no answer, or if there
	// never was one.
	Status int `json:"status"`
	// Upstream is what the server answered; 0 if the request did not get there.
	Upstream int `json:"upstream"`
	// BytesIn and BytesOut are the sizes of the bodies read and written, and
	// like Duration not known while Open.
	BytesIn  int64 `json:"bytesIn"`
	BytesOut int64 `json:"bytesOut"`
	// Duration is the time until the answer's last byte.
	Duration Duration `json:"duration"`
	// Open means that the request has not ended yet.
	Open bool `json:"open,omitempty"`
	// Fault names what was done to the request, if anything was.
	Fault string `json:"fault,omitempty"`
	// Error is why the server gave no answer although it was asked.
	Error     string `json:"error,omitempty"`
	UserAgent string `json:"userAgent,omitempty"`
}

// Record is requests in order of arrival.
type Record []Entry

// Record returns a copy of what was seen since Reset.
func (p *Proxy) Record() Record {
	r, _ := p.watch()
	return r
}

// Until returns when the record fulfils a condition: that a request is held
// back, say, or that all have ended.
func (p *Proxy) Until(ctx context.Context, condition func(Record) bool) error {
	for {
		r, changed := p.watch()
		if condition(r) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for requests: %w", context.Cause(ctx))
		}
	}
}

// watch returns the record and what closes when there is a newer one.
func (p *Proxy) watch() (Record, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := make(Record, len(p.entries))
	for i, e := range p.entries {
		r[i] = *e
	}
	return r, p.changed
}

func (p *Proxy) change() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Select returns the requests with the method (all, if empty) whose path and
// query the regular expression finds.
func (r Record) Select(method, path string) Record {
	re := regexp.MustCompile(path)
	return r.where(func(e Entry) bool {
		return (method == "" || e.Method == method) && re.MatchString(e.Path)
	})
}

// Count is how many requests Select returns.
func (r Record) Count(method, path string) int { return len(r.Select(method, path)) }

// Faults returns the requests that a rule disturbed.
func (r Record) Faults() Record { return r.where(func(e Entry) bool { return e.Fault != "" }) }

// Open returns the requests that have not ended.
func (r Record) Open() Record { return r.where(func(e Entry) bool { return e.Open }) }

// Reached returns the requests that the server answered.
func (r Record) Reached() Record { return r.where(func(e Entry) bool { return e.Upstream != 0 }) }

// Writes returns the requests that would change the cluster. Dry runs and the
// reviews that only ask about a token or a permission would not.
func (r Record) Writes() Record {
	review := regexp.MustCompile(`^/apis/(authentication|authorization)\.k8s\.io/`)
	return r.where(func(e Entry) bool {
		switch e.Method {
		case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
			return !strings.Contains(e.Path, "dryRun=All") && !review.MatchString(e.Path)
		}
		return false
	})
}

func (r Record) where(keep func(Entry) bool) Record {
	var out Record
	for _, e := range r {
		if keep(e) {
			out = append(out, e)
		}
	}
	return out
}

// begin enters a request into the record and decides about it.
func (p *Proxy) begin(r *http.Request) *call {
	e := &Entry{
		Time: time.Now(), Method: r.Method, Path: r.URL.RequestURI(),
		UserAgent: r.UserAgent(), Open: true,
	}
	if q := r.URL.Query().Get("watch"); r.Method == http.MethodGet && (q == "1" || q == "true") {
		e.Method = Watch
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.index++
	e.Index = p.index
	if len(p.entries) == maxEntries {
		p.entries = slices.Delete(p.entries, 0, maxEntries/2)
	}
	p.entries = append(p.entries, e)
	defer p.change()
	c := &call{entry: e, release: p.release, client: r}
	old := p.snapshots[snapshotKey(r)]
	for _, a := range p.rules {
		if a.due(e, old) && !c.fires { // every rule counts, the first fires
			a.fired++
			c.rule, c.fires = a.Rule, true
			c.stale = old.get(a.Snapshot)
			e.Fault = a.String()
		}
	}
	if c.fires && c.rule.Action.onStream() {
		// Events are counted by lines, and only JSON has those.
		r.Header.Set("Accept", "application/json")
	}
	return c
}

// began notes the status that the client is about to get.
func (p *Proxy) began(c *call, status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.entry.Status = status
	p.change()
}

func (p *Proxy) finish(c *call, in *countingReader, out *countingWriter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.change()
	e := c.entry
	e.BytesIn, e.BytesOut = in.n.Load(), out.n.Load()
	e.Duration, e.Open = Duration(time.Since(e.Time)), false
}
