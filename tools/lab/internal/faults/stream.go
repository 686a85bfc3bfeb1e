package faults

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"
)

// stream is the body of a watch that is to end early. The server writes one
// event a line.
type stream struct {
	body   io.ReadCloser
	action Action
	cut    func()    // resets the client's connection
	left   int       // events that still pass; -1: all
	ending io.Reader // what is left to say once the end has come
	timer  *time.Timer
	close  func() error
}

func newStream(c *call, body io.ReadCloser) *stream {
	s := &stream{
		body: body, action: c.rule.Action, cut: func() { cut(c.client.Context()) },
		left: c.rule.Events, close: sync.OnceValue(body.Close),
	}
	if c.rule.After > 0 {
		if s.left == 0 {
			s.left = -1
		}
		// Closing the server's side wakes the Read that waits for an event.
		s.timer = time.AfterFunc(time.Duration(c.rule.After), func() { _ = s.close() })
	}
	return s
}

func (s *stream) Read(b []byte) (int, error) {
	if s.ending != nil {
		return s.ending.Read(b)
	}
	if s.left == 0 {
		return s.end(b)
	}
	n, err := s.body.Read(b)
	if err != nil && n == 0 {
		return s.end(b)
	}
	if s.left < 0 {
		return n, nil
	}
	for i := 0; i < n; {
		line := bytes.IndexByte(b[i:n], '\n')
		if line < 0 {
			break
		}
		i += line + 1
		if s.left--; s.left == 0 {
			return i, nil
		}
	}
	return n, nil
}

// end does what the rule wants at the end of the stream.
func (s *stream) end(b []byte) (int, error) {
	_ = s.close()
	switch s.action {
	case CutWatch:
		s.cut()
		return 0, http.ErrAbortHandler
	case ExpireWatch:
		event, err := json.Marshal(struct {
			Type   string `json:"type"`
			Object status `json:"object"`
		}{"ERROR", newStatus(http.StatusGone, "")})
		if err != nil {
			return 0, err
		}
		s.ending = bytes.NewReader(append(event, '\n'))
		return s.ending.Read(b)
	}
	s.ending = bytes.NewReader(nil)
	return 0, io.EOF
}

func (s *stream) Close() error {
	if s.timer != nil {
		s.timer.Stop()
	}
	return s.close()
}
