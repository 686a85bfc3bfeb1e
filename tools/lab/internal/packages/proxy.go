package packages

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Proxy is an HTTP proxy for the guests' apt. It leads to Debian's mirrors and
// nowhere else, and keeps what can never change.
type Proxy struct {
	// Mirrors are the hosts that may be asked.
	Mirrors Mirrors
	// Cache is the folder for what is kept; several proxies may share it.
	Cache string
	// Down is a file: while it exists, every request is answered 503.
	Down string
	// Log receives a line for each request.
	Log *slog.Logger

	once   sync.Once
	client *http.Client
}

// headerWithin bounds the wait for a mirror's answer to begin.
const headerWithin = 30 * time.Second

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	status, source := p.serve(w, r)
	p.Log.Info("request", "method", r.Method, "url", r.URL.String(), "status", status, "from", source,
		"client", r.RemoteAddr, "took", time.Since(start).Round(time.Millisecond))
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) (status int, source string) {
	refuse := func(code int, why string) (int, string) {
		http.Error(w, why, code)
		return code, "proxy"
	}
	if _, err := os.Stat(p.Down); err == nil {
		return refuse(http.StatusServiceUnavailable, "the package proxy is down (a knob of the lab)")
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return refuse(http.StatusMethodNotAllowed, "only GET and HEAD")
	}
	mirror := p.mirror(r.URL)
	if mirror == nil {
		return refuse(http.StatusForbidden, "this proxy leads to Debian's mirrors only, not to "+r.URL.Host)
	}
	file := p.file(r.URL)
	if file != "" {
		if _, err := os.Stat(file); err == nil {
			http.ServeFile(w, r, file)
			return http.StatusOK, "cache"
		}
	}
	code, err := p.forward(w, r, mirror, file)
	if err != nil {
		p.Log.Error("forward", "url", r.URL.String(), "error", err)
	}
	return code, "mirror"
}

// mirror is the mirror that the guest means by u, or nil.
func (p *Proxy) mirror(u *url.URL) *url.URL {
	for _, m := range []*url.URL{p.Mirrors.Archive, p.Mirrors.Security} {
		within := strings.TrimSuffix(m.Path, "/") + "/"
		if m.Host == u.Host && u.Scheme == "http" && strings.HasPrefix(path.Clean(u.Path), within) {
			return m
		}
	}
	return nil
}

// file is where u is kept, or empty for what may change: only packages and
// indexes that are named by their hash stay the same for ever.
func (p *Proxy) file(u *url.URL) string {
	clean := path.Clean(u.Path)
	if !strings.HasSuffix(clean, ".deb") && !strings.Contains(clean, "/by-hash/") {
		return ""
	}
	return filepath.Join(p.Cache, strings.ReplaceAll(u.Host, ":", "_"), filepath.FromSlash(clean))
}

// forward asks the mirror, and keeps the answer if file is not empty.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, mirror *url.URL, file string) (int, error) {
	target := *r.URL
	target.Scheme = mirror.Scheme // the guest says http where the host uses https
	request, err := http.NewRequestWithContext(r.Context(), r.Method, target.String(), nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return http.StatusBadRequest, err
	}
	whole := file != "" && r.Method == http.MethodGet && r.Header.Get("Range") == ""
	for _, name := range []string{"Range", "If-Range", "If-Modified-Since", "User-Agent", "Cache-Control"} {
		if value := r.Header.Get(name); value != "" {
			request.Header.Set(name, value)
		}
	}
	response, err := p.http().Do(request)
	if err != nil {
		http.Error(w, "the mirror does not answer: "+err.Error(), http.StatusBadGateway)
		return http.StatusBadGateway, err
	}
	defer func() { _ = response.Body.Close() }()
	for _, name := range []string{"Content-Type", "Content-Length", "Content-Range", "Last-Modified", "Etag", "Accept-Ranges"} {
		if value := response.Header.Get(name); value != "" {
			w.Header().Set(name, value)
		}
	}
	w.WriteHeader(response.StatusCode)
	if whole && response.StatusCode == http.StatusOK {
		return response.StatusCode, keep(w, response, file)
	}
	_, err = io.Copy(w, response.Body)
	return response.StatusCode, err
}

// keep copies the answer to the guest and to file, which appears when whole.
func keep(w io.Writer, response *http.Response, file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("create cache folder: %w", err)
	}
	draft, err := os.CreateTemp(filepath.Dir(file), ".draft-*")
	if err != nil {
		return fmt.Errorf("create cache file: %w", err)
	}
	defer func() { _ = os.Remove(draft.Name()) }() // gone already once renamed
	written, err := io.Copy(io.MultiWriter(w, draft), response.Body)
	if err = errors.Join(err, draft.Chmod(0o644), draft.Close()); err != nil {
		return fmt.Errorf("copy package: %w", err)
	}
	if response.ContentLength >= 0 && written != response.ContentLength {
		return fmt.Errorf("copy package: %d of %d bytes", written, response.ContentLength)
	}
	return os.Rename(draft.Name(), file)
}

func (p *Proxy) http() *http.Client {
	p.once.Do(func() {
		transport := &http.Transport{ResponseHeaderTimeout: headerWithin, DisableCompression: true}
		transport.Proxy = http.ProxyFromEnvironment
		if p.Mirrors.Proxy != nil {
			transport.Proxy = http.ProxyURL(p.Mirrors.Proxy)
		}
		p.client = &http.Client{Transport: transport}
	})
	return p.client
}
