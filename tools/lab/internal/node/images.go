package node

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// imageFileBytes is the size of every file that the image server has.
const imageFileBytes = 512 << 20

// serveImages is the web server behind the images' URLs. Every path is a qcow2 file
// of the lab's image, but one that contains "missing" does not exist.
func serveImages(ctx context.Context, port int, virtualBytes int64) error {
	s := &http.Server{
		Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "missing") {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/octet-stream")
			http.ServeContent(w, r, r.URL.Path, time.Time{}, &sparseImage{header: qcow2Header(virtualBytes)})
		}),
	}
	return serve(ctx, s, s.ListenAndServe)
}

// qcow2Header is the beginning of an image file; Harvester reads magic and size
// from it for images with the backend cdi.
func qcow2Header(virtualBytes int64) []byte {
	h := make([]byte, 0, 128)
	h = append(h, "QFI\xfb"...)
	h = binary.BigEndian.AppendUint32(h, 3)
	h = append(h, make([]byte, 16)...)
	h = binary.BigEndian.AppendUint64(h, uint64(virtualBytes))
	return h
}

// sparseImage is a file of zeros behind a header.
type sparseImage struct {
	header []byte
	at     int64
}

func (s *sparseImage) Read(p []byte) (int, error) {
	if s.at >= imageFileBytes {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), imageFileBytes-s.at))
	clear(p[:n])
	if s.at < int64(len(s.header)) {
		copy(p[:n], s.header[s.at:])
	}
	s.at += int64(n)
	return n, nil
}

func (s *sparseImage) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += s.at
	case io.SeekEnd:
		offset += imageFileBytes
	}
	if offset < 0 {
		return 0, errors.New("seek image: before its beginning")
	}
	s.at = offset
	return offset, nil
}
