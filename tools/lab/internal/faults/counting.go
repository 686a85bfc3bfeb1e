package faults

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// countingReader counts a request's body. The server's transport may still
// read it while the handler ends, hence atomic.
type countingReader struct {
	body io.ReadCloser
	n    atomic.Int64
}

func (r *countingReader) Read(b []byte) (int, error) {
	n, err := r.body.Read(b)
	r.n.Add(int64(n))
	return n, err
}

func (r *countingReader) Close() error { return r.body.Close() }

// countingWriter counts an answer's body and tells its status, before the
// client can know it.
type countingWriter struct {
	http.ResponseWriter
	n     atomic.Int64
	once  sync.Once
	began func(status int)
}

func (w *countingWriter) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.once.Do(func() { w.began(status) })
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *countingWriter) Write(b []byte) (int, error) {
	w.once.Do(func() { w.began(http.StatusOK) })
	n, err := w.ResponseWriter.Write(b)
	w.n.Add(int64(n))
	return n, err
}

// Unwrap lets http.ResponseController flush and hijack.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// discard takes the server's answer when the client is to get another one.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Flush()                      {}
