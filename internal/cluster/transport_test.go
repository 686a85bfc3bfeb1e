package cluster_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"

	"github.com/wso2/terraform-provider-dbaas/internal/cluster"
)

// gateway is a forward proxy that counts the tunnels it opened.
func gateway(t *testing.T) (address string, tunnels *atomic.Int32) {
	t.Helper()
	tunnels = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		up, err := new(net.Dialer).DialContext(r.Context(), "tcp", r.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		tunnels.Add(1)
		w.WriteHeader(http.StatusOK)
		down, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			_ = up.Close()
			return
		}
		go func() { _, _ = io.Copy(up, down); _ = up.Close() }()
		go func() { _, _ = io.Copy(down, up); _ = down.Close() }()
	}))
	t.Cleanup(s.Close)
	return s.URL, tunnels
}

func TestProxyURLIsUsed(t *testing.T) {
	s := newAPIServer(t)
	for _, fromBlock := range []bool{true, false} {
		address, tunnels := gateway(t)
		c := cluster.Config{Host: s.URL, CACertificate: s.CA, Token: goodToken}
		env := environment{}
		if fromBlock {
			c.ProxyURL = address
		} else {
			env["KUBE_PROXY_URL"] = address
		}
		client, err := cluster.New(c, env.get)
		if err != nil {
			t.Fatal(err)
		}
		if err := reach(t, client); err != nil {
			t.Error(err)
		}
		if tunnels.Load() == 0 {
			t.Errorf("from the block %t: the request did not go through the proxy", fromBlock)
		}
	}
}

// Not parallel: it replaces the process's standard error.
func TestWarningsOfTheAPIAreNotPrinted(t *testing.T) {
	s := newAPIServer(t)
	c, err := cluster.New(cluster.Config{Host: s.URL, CACertificate: s.CA, Token: goodToken}, environment{}.get)
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stderr
	os.Stderr = write
	err = reach(t, c)
	os.Stderr = before
	_ = write.Close()
	if err != nil {
		t.Error(err)
	}
	printed, err := io.ReadAll(read)
	if err != nil {
		t.Fatal(err)
	}
	if len(printed) > 0 {
		t.Errorf("printed: %s", printed)
	}
}

// client-go would allow five requests a second.
func TestRequestsAreNotThrottled(t *testing.T) {
	s := newAPIServer(t)
	c, err := cluster.New(cluster.Config{Host: s.URL, CACertificate: s.CA, Token: goodToken}, environment{}.get)
	if err != nil {
		t.Fatal(err)
	}
	if limiter := c.Core.RESTClient().GetRateLimiter(); limiter != nil && limiter.QPS() > 0 {
		t.Errorf("at most %v requests a second", limiter.QPS())
	}
}
