package packages

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fixture is a proxy in front of a mirror that counts its requests.
type fixture struct {
	proxy    *Proxy
	client   *http.Client
	mirror   *url.URL
	requests atomic.Int32
}

func newFixture(t *testing.T, mirror http.HandlerFunc) *fixture {
	t.Helper()
	f := new(fixture)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.requests.Add(1)
		mirror(w, r)
	}))
	t.Cleanup(upstream.Close)
	f.mirror = address(t, upstream.URL+"/debian/")
	f.proxy = &Proxy{
		Mirrors: Mirrors{Archive: f.mirror, Security: address(t, upstream.URL+"/debian-security/")},
		Cache:   t.TempDir(), Down: filepath.Join(t.TempDir(), "packages.down"), Log: slog.New(slog.DiscardHandler),
	}
	front := httptest.NewServer(f.proxy)
	t.Cleanup(front.Close)
	f.client = &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(address(t, front.URL))}}
	t.Cleanup(f.client.CloseIdleConnections)
	return f
}

func address(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// get returns status and body, without failing: it may run beside the test.
func (f *fixture) get(path string) (int, string) {
	target := *f.mirror
	target.Path = path
	response, err := f.client.Get(target.String()) //nolint:noctx // it ends with the fixture's server
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return response.StatusCode, err.Error()
	}
	return response.StatusCode, string(body)
}

func echoPath(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }

func TestPackagesAreKeptAndIndexesAreNot(t *testing.T) {
	f := newFixture(t, echoPath)
	for _, c := range []struct {
		path string
		asks int32
	}{
		{"/debian/pool/main/p/pg/pg_1.deb", 1},
		{"/debian/dists/bookworm/main/by-hash/SHA256/00ff", 1},
		{"/debian-security/pool/main/p/pg/pg_2.deb", 1},
		{"/debian/dists/bookworm/InRelease", 3},
	} {
		f.requests.Store(0)
		for range 3 {
			if status, body := f.get(c.path); status != http.StatusOK || body != c.path {
				t.Errorf("%s: %d %q", c.path, status, body)
			}
		}
		if got := f.requests.Load(); got != c.asks {
			t.Errorf("%s: the mirror was asked %d times, want %d", c.path, got, c.asks)
		}
	}
}

func TestOnlyTheMirrorsAreReached(t *testing.T) {
	f := newFixture(t, echoPath)
	other := httptest.NewServer(http.HandlerFunc(echoPath))
	defer other.Close()
	target := address(t, other.URL+"/debian/pool/a.deb")
	response, err := f.client.Get(target.String()) //nolint:noctx // as above
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	got := []int{response.StatusCode}
	for _, path := range []string{"/other/pool/a.deb", "/debian/../secret.deb"} {
		status, _ := f.get(path)
		got = append(got, status)
	}
	if diff := cmp.Diff([]int{403, 403, 403}, got); diff != "" {
		t.Error(diff)
	}
	if f.requests.Load() != 0 {
		t.Error("the mirror was asked")
	}
}

func TestDownAnswers503UntilTheFileGoes(t *testing.T) {
	f := newFixture(t, echoPath)
	const path = "/debian/pool/a.deb"
	before, _ := f.get(path)
	if err := os.WriteFile(f.proxy.Down, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	during, _ := f.get(path)
	if err := os.Remove(f.proxy.Down); err != nil {
		t.Fatal(err)
	}
	after, _ := f.get(path)
	if diff := cmp.Diff([]int{200, 503, 200}, []int{before, during, after}); diff != "" {
		t.Error(diff)
	}
}

func TestABrokenDownloadIsNotKept(t *testing.T) {
	var whole atomic.Bool
	f := newFixture(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "7")
		if whole.Load() {
			_, _ = io.WriteString(w, "package")
			return
		}
		_, _ = io.WriteString(w, "pack")
		panic(http.ErrAbortHandler)
	})
	const path = "/debian/pool/a.deb"
	f.get(path)
	whole.Store(true)
	if status, body := f.get(path); status != http.StatusOK || body != "package" {
		t.Errorf("got %d %q", status, body)
	}
	if drafts, _ := filepath.Glob(filepath.Join(f.proxy.Cache, "*/debian/pool/.draft-*")); len(drafts) > 0 {
		t.Errorf("left behind: %v", drafts)
	}
}

func TestManyGuestsAskForOnePackage(t *testing.T) {
	f := newFixture(t, echoPath)
	const path = "/debian/pool/a.deb"
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			if status, body := f.get(path); status != http.StatusOK || body != path {
				t.Errorf("got %d %q", status, body)
			}
		})
	}
	wait.Wait()
}

func TestParseTakesDebiansSourcesOnly(t *testing.T) {
	m := parse("Debian|Debian|https://mirror.example/debian/\nNode Source|nodistro|https://node.example/\n" +
		"Debian|Debian-Security|http://mirror.example/debian-security/\nDebian|Debian|cdrom:/debian\n")
	want := `Types: deb
URIs: http://mirror.example/debian/
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security/
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
`
	if diff := cmp.Diff(want, m.Sources(true)); diff != "" {
		t.Error(diff)
	}
}
