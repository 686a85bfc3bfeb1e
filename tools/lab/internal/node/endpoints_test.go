package node

import (
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestLogTail(t *testing.T) {
	for _, c := range []struct {
		log   string
		lines int
		want  string
	}{
		{"a\nb\nc\n", -1, "a\nb\nc\n"},
		{"a\nb\nc\n", 2, "b\nc\n"},
		{"a\nb\nc", 1, "c"},
		{"a\nb\n", 9, "a\nb\n"},
		{"a\n", 0, ""},
		{"", 3, ""},
	} {
		var out strings.Builder
		if err := copyTail(&out, strings.NewReader(c.log), c.lines); err != nil || out.String() != c.want {
			t.Errorf("the last %d lines of %q are %q, %v", c.lines, c.log, out.String(), err)
		}
	}
}

func TestImageServerLooksLikeAQcow2File(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "x.qcow2", time.Time{}, &sparseImage{header: qcow2Header(3 << 30)})
	}))
	defer s.Close()
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodHead, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	head, err := http.DefaultClient.Do(ask)
	if err != nil {
		t.Fatal(err)
	}
	defer head.Body.Close()
	if head.ContentLength != imageFileBytes {
		t.Errorf("HEAD says %d bytes", head.ContentLength)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Range", "bytes=0-127")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || len(b) != 128 {
		t.Fatalf("128 bytes were asked for, %d came, %v", len(b), err)
	}
	if string(b[:4]) != "QFI\xfb" || binary.BigEndian.Uint64(b[24:32]) != 3<<30 {
		t.Errorf("the header is %x", b)
	}
}
