package faults

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/google/go-cmp/cmp"
)

// bench is a server, a proxy in front of it, and a client of the proxy.
type bench struct {
	server *server
	proxy  *Proxy
	config rest.Config
	maps   clientv1.ConfigMapInterface
}

// overBoth runs a test with clients that speak HTTP/1.1 and HTTP/2.
func overBoth(t *testing.T, test func(t *testing.T, b bench)) {
	for name, protocols := range map[string][]string{"HTTP/1.1": {"http/1.1"}, "HTTP/2": nil} {
		t.Run(name, func(t *testing.T) { test(t, newBench(t, protocols)) })
	}
}

func newBench(t *testing.T, protocols []string) bench {
	t.Helper()
	s := newServer()
	upstream := httptest.NewUnstartedServer(s)
	upstream.EnableHTTP2 = true
	upstream.StartTLS()
	t.Cleanup(upstream.Close)
	at, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := New(Options{Upstream: at, Transport: upstream.Client().Transport})
	front := p.Server(upstream.TLS.Certificates[0])
	front.ErrorLog = log.New(io.Discard, "", 0) // it reports each cut
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = front.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { _ = front.Close() })
	return bench{server: s, proxy: p}.as(t, rest.Config{
		Host: "https://" + listener.Addr().String(), QPS: -1, UserAgent: "bench", BearerToken: "token",
		TLSClientConfig: rest.TLSClientConfig{Insecure: true, NextProtos: protocols},
		ContentConfig:   rest.ContentConfig{ContentType: "application/json"},
	})
}

// as returns the same bench with another client.
func (b bench) as(t *testing.T, config rest.Config) bench {
	t.Helper()
	client, err := kubernetes.NewForConfig(&config)
	if err != nil {
		t.Fatal(err)
	}
	b.config, b.maps = config, client.CoreV1().ConfigMaps("ns")
	return b
}

func (b bench) inject(t *testing.T, r Rule) {
	t.Helper()
	if err := b.proxy.Inject(r); err != nil {
		t.Fatal(err)
	}
}

func (b bench) create(name string) error {
	_, err := b.maps.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

func (b bench) get(name string) error {
	_, err := b.maps.Get(context.Background(), name, metav1.GetOptions{})
	return err
}

func TestRequestsPassUnchanged(t *testing.T) {
	overBoth(t, func(t *testing.T, b bench) {
		if err := b.create("a"); err != nil {
			t.Fatal(err)
		}
		if err := b.get("a"); err != nil {
			t.Fatal(err)
		}
		if got, want := b.server.authorization(), "Bearer token"; got != want {
			t.Errorf("the server saw authorization %q, want the client's, %q", got, want)
		}
		if f := b.proxy.Record().Faults(); len(f) != 0 {
			t.Errorf("faults without a rule: %v", f)
		}
	})
}

func TestAnswersCarryTheReasonThatClientsBranchOn(t *testing.T) {
	cases := map[string]struct {
		rule Rule
		is   func(error) bool
	}{
		"409":               {Rule{Status: 409}, apierrors.IsConflict},
		"409 AlreadyExists": {Rule{Status: 409, Reason: "AlreadyExists"}, apierrors.IsAlreadyExists},
		"410":               {Rule{Status: 410}, apierrors.IsResourceExpired},
		"403":               {Rule{Status: 403}, apierrors.IsForbidden},
		"429":               {Rule{Status: 429}, apierrors.IsTooManyRequests},
		"500":               {Rule{Status: 500}, apierrors.IsInternalError},
		"503":               {Rule{Status: 503}, apierrors.IsServiceUnavailable},
		"504":               {Rule{Status: 504}, apierrors.IsTimeout},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			overBoth(t, func(t *testing.T, b bench) {
				c.rule.Action = Answer
				b.inject(t, c.rule)
				if err := b.create("a"); !c.is(err) {
					t.Errorf("create: %v", err)
				}
				if n := b.server.created(); n != 0 {
					t.Errorf("%d objects were created", n)
				}
				if err := b.create("a"); err != nil {
					t.Errorf("the rule was to fire once: %v", err)
				}
			})
		})
	}
}

func TestRetryAfterMakesClientGoTryAgain(t *testing.T) {
	overBoth(t, func(t *testing.T, b bench) {
		b.inject(t, Rule{Action: Answer, Status: 429, RetryAfter: 1})
		if err := b.create("a"); err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, e := range b.proxy.Record() {
			got = append(got, e.Status)
		}
		if diff := cmp.Diff([]int{429, 201}, got); diff != "" {
			t.Errorf("statuses:\n%s", diff)
		}
	})
}

func TestAnswerAfterEffectHidesASuccess(t *testing.T) {
	overBoth(t, func(t *testing.T, b bench) {
		b.inject(t, Rule{Method: "POST", Action: Answer, Status: 504, Effect: true})
		if err := b.create("a"); !apierrors.IsTimeout(err) {
			t.Errorf("create: %v", err)
		}
		if err := b.get("a"); err != nil {
			t.Errorf("the request should have taken effect: %v", err)
		}
		if e := b.proxy.Record()[0]; e.Status != 504 || e.Upstream != 201 {
			t.Errorf("recorded status %d, upstream %d", e.Status, e.Upstream)
		}
	})
}

func TestCutBeforeTheServerIsAConnectionError(t *testing.T) {
	overBoth(t, func(t *testing.T, b bench) {
		if err := b.get("none"); !apierrors.IsNotFound(err) { // so that a connection stands
			t.Fatal(err)
		}
		b.inject(t, Rule{Method: "POST", Action: Cut})
		if err := b.create("a"); !connectionLost(err) {
			t.Errorf("create: %v", err)
		}
		if n := b.server.created(); n != 0 {
			t.Errorf("%d objects were created", n)
		}
		if e := b.proxy.Record().Faults(); len(e) != 1 || e[0].Status != 0 || e[0].Upstream != 0 {
			t.Errorf("recorded: %+v", e)
		}
	})
}

func TestCutAfterEffectLeavesTheObject(t *testing.T) {
	overBoth(t, func(t *testing.T, b bench) {
		b.inject(t, Rule{Method: "POST", Action: Cut, Effect: true})
		if err := b.create("a"); !connectionLost(err) {
			t.Errorf("create: %v", err)
		}
		if err := b.get("a"); err != nil {
			t.Errorf("the request should have taken effect: %v", err)
		}
		if e := b.proxy.Record().Faults(); len(e) != 1 || e[0].Status != 0 || e[0].Upstream != 201 {
			t.Errorf("recorded: %+v", e)
		}
	})
}

func TestClientGoRepeatsAGetWhoseConnectionWasCut(t *testing.T) {
	overBoth(t, func(t *testing.T, b bench) {
		if err := b.create("a"); err != nil {
			t.Fatal(err)
		}
		b.inject(t, Rule{Method: "GET", Action: Cut})
		if err := b.get("a"); err != nil {
			t.Error(err)
		}
		if n := b.proxy.Record().Count("GET", "/configmaps/a$"); n != 2 {
			t.Errorf("%d requests, want the cut one and another", n)
		}
	})
}

func TestAServerThatIsDownLooksDown(t *testing.T) {
	overBoth(t, func(t *testing.T, b bench) {
		b.proxy.forward.Transport = refused{}
		if err := b.create("a"); !connectionLost(err) {
			t.Errorf("create: %v", err)
		}
		if e := b.proxy.Record()[0]; e.Error != "connection refused" {
			t.Errorf("recorded: %+v", e)
		}
	})
}

type refused struct{}

func (refused) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// connectionLost is what client-go itself takes for one.
func connectionLost(err error) bool {
	return err != nil && (utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err))
}
