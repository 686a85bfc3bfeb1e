package guest_test

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/packages"
)

const proxyPort = 3142

func TestContainerInstallsPackagesThroughTheProxy(t *testing.T) {
	installs(t, newSite(t, guest.Container, "plain"))
}

func TestVMInstallsPackagesThroughTheProxy(t *testing.T) {
	installs(t, newSite(t, guest.VM, "plain"))
}

// installs boots an image that is like Debian's own: no PostgreSQL, no agent.
func installs(t *testing.T, s *site) {
	proxy := servePackages(t, s)
	s.volumes(t, "root", "data")
	spec := s.spec("uid-1", "root", "data")
	m := s.boot(t, spec)
	if _, _, err := m.Exec(t.Context(), []string{"true"}); !errors.Is(err, guest.ErrNoAgent) {
		t.Errorf("a plain image has no agent: %v", err)
	}
	s.answers(t, m, spec.NICs[0].Address, "select ssl from pg_stat_ssl where pid = pg_backend_pid()", "t")
	until(t, m, func() error {
		_, _, err := m.Exec(t.Context(), []string{"true"})
		return err
	})
	if got := proxy.served.Load(); got < 10 {
		t.Errorf("the proxy served %d requests: where did the packages come from?", got)
	}
	if code, _, err := m.Exec(t.Context(), []string{"ip", "route", "get", "192.0.2.1"}); err != nil || code == 0 {
		t.Errorf("the guest has a route outside (exit %d, %v)", code, err)
	}
}

type countingProxy struct {
	*packages.Proxy
	served atomic.Int32
}

func (c *countingProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.served.Add(1)
	c.Proxy.ServeHTTP(w, r)
}

func servePackages(t *testing.T, s *site) *countingProxy {
	t.Helper()
	mirrors, err := packages.HostMirrors(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := options(s.dir, s.network, "")
	proxy := &countingProxy{Proxy: &packages.Proxy{
		Mirrors: mirrors, Cache: filepath.Join(o.Cache, "packages"),
		Down: filepath.Join(s.dir, "packages.down"), Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", o.PackageProxy.String())
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return proxy
}
