package lab_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/url"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/faults"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/labtest"
)

// disturbed is a way to the real API server through a fault proxy of its own,
// which lives in the test's process. It is the administrator's: a tenant may
// not list Secrets.
type disturbed struct {
	proxy   *faults.Proxy
	kube    kubernetes.Interface
	secrets clientv1.SecretInterface
	// undisturbed sees what the server really holds.
	undisturbed clientv1.SecretInterface
	name        string
}

func newDisturbed(t *testing.T) disturbed {
	t.Helper()
	lab := labtest.Start(t, guest.Sim)
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(lab.Admin.Config))
	if err != nil {
		t.Fatal(err)
	}
	upstream, err := url.Parse(lab.Admin.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.LoadX509KeyPair(lab.Dir.PKI("proxy.crt"), lab.Dir.PKI("proxy.key"))
	if err != nil {
		t.Fatal(err)
	}
	p := faults.New(faults.Options{Upstream: upstream, Transport: transport})
	front := p.Server(cert)
	front.ErrorLog = log.New(io.Discard, "", 0) // it reports each cut
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = front.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { _ = front.Close() })
	config := rest.CopyConfig(lab.Admin.Config)
	config.Host = "https://" + listener.Addr().String()
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	d := disturbed{
		proxy: p, kube: kube, secrets: kube.CoreV1().Secrets(labtest.Tenant),
		undisturbed: lab.Admin.Kube.CoreV1().Secrets(labtest.Tenant), name: labtest.Name(t),
	}
	t.Cleanup(func() {
		err := d.undisturbed.Delete(context.Background(), d.name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	return d
}

func (d disturbed) inject(t *testing.T, r faults.Rule) {
	t.Helper()
	if err := d.proxy.Inject(r); err != nil {
		t.Fatal(err)
	}
}

func (d disturbed) create(options metav1.CreateOptions) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: d.name}}
	_, err := d.secrets.Create(context.Background(), secret, options)
	return err
}

// exists asks the server itself.
func (d disturbed) exists(t *testing.T) bool {
	t.Helper()
	_, err := d.undisturbed.Get(t.Context(), d.name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

func lost(err error) bool {
	return err != nil && (utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err))
}

func TestFaultsOfAWrite(t *testing.T) {
	succeeded := func(err error) bool { return err == nil }
	answer := func(status, retryAfter int, effect bool) faults.Rule {
		return faults.Rule{Action: faults.Answer, Status: status, RetryAfter: retryAfter, Effect: effect}
	}
	cases := map[string]struct {
		rule   faults.Rule
		is     func(error) bool
		exists bool
	}{
		"409":                     {answer(409, 0, false), apierrors.IsConflict, false},
		"410":                     {answer(410, 0, false), apierrors.IsResourceExpired, false},
		"429 is repeated":         {answer(429, 1, false), succeeded, true},
		"500":                     {answer(500, 0, false), apierrors.IsInternalError, false},
		"503":                     {answer(503, 0, false), apierrors.IsServiceUnavailable, false},
		"504":                     {answer(504, 0, false), apierrors.IsTimeout, false},
		"504 after the effect":    {answer(504, 0, true), apierrors.IsTimeout, true},
		"429 after the effect":    {answer(429, 1, true), apierrors.IsAlreadyExists, true},
		"cut before the effect":   {faults.Rule{Action: faults.Cut}, lost, false},
		"cut after the effect":    {faults.Rule{Action: faults.Cut, Effect: true}, lost, true},
		"late, but it gets there": {faults.Rule{Action: faults.Delay, Delay: faults.Duration(time.Millisecond)}, succeeded, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := newDisturbed(t)
			c.rule.Method, c.rule.Path = "POST", "/secrets"
			d.inject(t, c.rule)
			if err := d.create(metav1.CreateOptions{}); !c.is(err) {
				t.Errorf("create: %v", err)
			}
			if got := d.exists(t); got != c.exists {
				t.Errorf("the Secret exists: %v, want %v", got, c.exists)
			}
			if n := len(d.proxy.Record().Faults()); n != 1 {
				t.Errorf("the fault fired %d times", n)
			}
		})
	}
}

func TestFaultsDoNotStopAnInformer(t *testing.T) {
	cases := map[string]struct {
		rule faults.Rule
		// relists: the informer must read all again. After the others it may: a
		// watch that was very short makes client-go suspicious.
		relists bool
	}{
		"end":               {faults.Rule{Action: faults.EndWatch, After: faults.Duration(time.Millisecond)}, false},
		"cut":               {faults.Rule{Action: faults.CutWatch, After: faults.Duration(time.Millisecond)}, false},
		"410 in the stream": {faults.Rule{Action: faults.ExpireWatch, After: faults.Duration(time.Millisecond)}, true},
		"410 as the answer": {faults.Rule{Method: faults.Watch, Action: faults.Answer, Status: 410}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := newDisturbed(t)
			d.inject(t, c.rule)
			seen := d.inform(t)
			// The disturbed watch is over, and another one is open.
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			err := d.proxy.Until(ctx, func(r faults.Record) bool {
				w := r.Select(faults.Watch, "/secrets")
				return len(w.Faults()) == 1 && len(w.Faults().Open()) == 0 && len(w) == 2
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.create(metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			select {
			case <-seen:
			case <-ctx.Done():
				t.Fatal("the informer does not see the Secret")
			}
			if lists := d.proxy.Record().Count("GET", "/secrets"); c.relists && lists < 2 {
				t.Errorf("%d lists, want another after the watch expired", lists)
			}
		})
	}
}

// inform starts an informer and returns what is closed once it knows the test's Secret.
func (d disturbed) inform(t *testing.T) <-chan struct{} {
	t.Helper()
	seen := make(chan struct{})
	factory := informers.NewSharedInformerFactoryWithOptions(d.kube, 0, informers.WithNamespace(labtest.Tenant))
	informer := factory.Core().V1().Secrets().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		if object.(*corev1.Secret).Name == d.name {
			close(seen)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop); factory.Shutdown() })
	factory.Start(stop)
	return seen
}

func TestAStaleListHidesWhatWasCreated(t *testing.T) {
	d := newDisturbed(t)
	listed := func() int {
		l, err := d.secrets.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + d.name})
		if err != nil {
			t.Fatal(err)
		}
		return len(l.Items)
	}
	if n := listed(); n != 0 {
		t.Fatalf("%d Secrets before the first", n)
	}
	d.proxy.Mark()
	if err := d.create(metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	d.inject(t, faults.Rule{Action: faults.Stale, Snapshot: faults.Marked})
	if n := listed(); n != 0 {
		t.Errorf("%d Secrets in the old list", n)
	}
	if n := listed(); n != 1 {
		t.Errorf("%d Secrets in the new list", n)
	}
}

func TestTheRecordProvesThatNothingWasWritten(t *testing.T) {
	d := newDisturbed(t)
	if err := d.create(metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Fatal(err)
	}
	if w := d.proxy.Record().Writes(); len(w) != 0 || d.exists(t) {
		t.Errorf("a dry run wrote: %v", w)
	}
	if err := d.create(metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if w := d.proxy.Record().Writes().Reached(); len(w) != 1 || w[0].Upstream != 201 {
		t.Errorf("writes: %v", w)
	}
}

func TestTheLabsOwnProxyIsDrivenByItsCommand(t *testing.T) {
	lab := labtest.Start(t, guest.Sim)
	through, err := labtest.NewAccess(lab.Dir.ProxyKubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	lab.Run(t, "faults", "-reset")
	t.Cleanup(func() { lab.Run(t, "faults", "-reset") })
	lab.Run(t, "faults", "-inject", `{"method":"GET","path":"/secrets/none$","action":"answer","status":503}`)
	get := func() error {
		_, err := through.Kube.CoreV1().Secrets(labtest.Tenant).Get(t.Context(), "none", metav1.GetOptions{})
		return err
	}
	if err := get(); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("get: %v", err)
	}
	if err := get(); !apierrors.IsNotFound(err) {
		t.Errorf("get: %v, want the server's answer to the tenant", err)
	}
	var record faults.Record
	if err := json.Unmarshal([]byte(lab.Run(t, "faults", "-json")), &record); err != nil {
		t.Fatal(err)
	}
	if len(record) != 2 || record[0].Fault != "answer 503" || record[1].Upstream != 404 {
		t.Errorf("recorded: %+v", record)
	}
}
