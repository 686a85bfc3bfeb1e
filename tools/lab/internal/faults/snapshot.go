package faults

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
)

const (
	maxSnapshot  = 4 << 20 // bytes; a longer answer is not kept
	maxSnapshots = 2000    // requests; further ones are not kept
)

// snapshot is an answer that Stale can repeat. It lives in memory only and
// leaves the proxy only to who asked the same with the same credentials.
type snapshot struct {
	status int
	header http.Header
	body   []byte
}

// versions are the kept answers to one request.
type versions struct{ first, marked, last *snapshot }

func (v *versions) get(name string) *snapshot {
	switch {
	case v == nil:
		return nil
	case name == Marked:
		return v.marked
	default:
		return v.first
	}
}

// Mark makes the last answer to each GET the one that Stale repeats with
// Snapshot Marked.
func (p *Proxy) Mark() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.snapshots {
		v.marked = v.last
	}
}

// snapshotKey tells GETs apart. The resource version is no part of it: a list
// "from the cache" and one "of the newest" are the same list.
func snapshotKey(r *http.Request) string {
	q := make(url.Values)
	maps.Copy(q, r.URL.Query())
	q.Del("resourceVersion")
	q.Del("resourceVersionMatch")
	who := sha256.Sum256([]byte(r.Header.Get("Authorization")))
	return fmt.Sprintf("%s?%s %s %x", r.URL.Path, q.Encode(), r.Header.Get("Accept"), who)
}

func (s *snapshot) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), s.header)
	w.WriteHeader(s.status)
	_, _ = w.Write(s.body) // a client that left is not our problem
}

// keep copies an answer while the client reads it.
func (p *Proxy) keep(key string, res *http.Response) io.ReadCloser {
	s := &snapshot{status: res.StatusCode, header: res.Header.Clone()}
	return &keeper{ReadCloser: res.Body, length: res.ContentLength, done: func(body []byte) {
		s.body = body
		p.mu.Lock()
		defer p.mu.Unlock()
		v := p.snapshots[key]
		switch {
		case v != nil:
			v.last = s
		case len(p.snapshots) < maxSnapshots:
			p.snapshots[key] = &versions{first: s, last: s}
		}
	}}
}

// keeper calls done with the whole body when that was read to its end.
type keeper struct {
	io.ReadCloser
	length int64 // -1: not known
	buf    bytes.Buffer
	long   bool
	done   func([]byte)
}

func (k *keeper) Read(b []byte) (int, error) {
	n, err := k.ReadCloser.Read(b)
	if k.long = k.long || k.buf.Len()+n > maxSnapshot; k.long {
		k.buf = bytes.Buffer{} // such as a log that is followed
		return n, err
	}
	k.buf.Write(b[:n])
	// A client that knows the length does not wait for the end of the body:
	// what it has read must be kept by then.
	if whole := err == io.EOF || int64(k.buf.Len()) == k.length; whole && k.done != nil {
		k.done(k.buf.Bytes())
		k.done = nil
	}
	return n, err
}
