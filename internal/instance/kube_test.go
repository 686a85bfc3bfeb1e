package instance

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestFailuresAreSorted(t *testing.T) {
	vms := schema.GroupResource{Group: "kubevirt.io", Resource: "virtualmachines"}
	generic := func(code int) error {
		return apierrors.NewGenericServerResponse(code, "get", vms, "pg-orders", "", 0, true)
	}
	sent := func(cause error) error { return &url.Error{Op: "Post", URL: "https://x", Err: cause} }
	for story, test := range map[string]struct {
		err                         error
		transient, refused, missing bool
	}{
		"no such object":      {err: apierrors.NewNotFound(vms, "pg-orders"), refused: true, missing: true},
		"no such group":       {err: generic(404), refused: true},
		"forbidden":           {err: apierrors.NewForbidden(vms, "pg-orders", io.EOF), refused: true},
		"invalid":             {err: generic(422), refused: true},
		"denied by a webhook": {err: generic(400), refused: true},
		"exists":              {err: apierrors.NewAlreadyExists(vms, "pg-orders"), refused: true},
		"conflict":            {err: apierrors.NewConflict(vms, "pg-orders", io.EOF), refused: true},
		"busy":                {err: apierrors.NewTooManyRequests("later", 1), transient: true},
		"expired":             {err: apierrors.NewResourceExpired("old"), transient: true},
		"internal":            {err: apierrors.NewInternalError(io.EOF), transient: true},
		"unavailable":         {err: generic(503), transient: true},
		"gateway":             {err: generic(504), transient: true},
		"refused connection":  {err: sent(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), transient: true},
		"cut":                 {err: sent(io.EOF), transient: true},
		"cut inside":          {err: sent(io.ErrUnexpectedEOF), transient: true},
		"reset":               {err: sent(syscall.ECONNRESET), transient: true},
		"forced to close":     {err: sent(errors.New("http2: client connection force closed via ClientConn.Close")), transient: true},
		"going away":          {err: sent(errors.New("http2: server sent GOAWAY and closed the connection")), transient: true},
		"lost in the body":    {err: fmt.Errorf("unexpected error when reading response body. Please retry. Original error: %w", errors.New("http2: client connection lost")), transient: true},
		"stream reset":        {err: fmt.Errorf("stream error when reading response body, may be caused by closed connection. Please retry. Original error: %w", errors.New("stream error: stream ID 1; INTERNAL_ERROR")), transient: true},
		"other authority":     {err: sent(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}})},
		"no certificate":      {err: sent(&net.OpError{Op: "remote error", Err: tls.AlertError(42)})},
		"not TLS":             {err: sent(errors.New("http: server gave HTTP response to HTTPS client"))},
		"no credentials":      {err: sent(errors.New("getting credentials: exec: executable login failed with exit code 1"))},
		"not the API":         {err: errors.New("couldn't get version/kind; json parse error")},
		"no such host":        {err: sent(&net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}})},
		"deadline":            {err: sent(context.DeadlineExceeded)},
		"interrupted":         {err: sent(context.Canceled)},
	} {
		err := fmt.Errorf("get vm a/b: %w", test.err)
		if got := transient(err); got != test.transient {
			t.Errorf("%s: transient = %t", story, got)
		}
		if got := refused(err); got != test.refused {
			t.Errorf("%s: refused = %t", story, got)
		}
		if got := objectNotFound(err); got != test.missing {
			t.Errorf("%s: object not found = %t", story, got)
		}
	}
}

func TestRetryAfterIsHeeded(t *testing.T) {
	if got := retryAfter(fmt.Errorf("x: %w", apierrors.NewTooManyRequests("later", 3))).Seconds(); got != 3 {
		t.Errorf("retry after %v s, want 3", got)
	}
	if got := retryAfter(&apierrors.StatusError{ErrStatus: metav1.Status{Code: 500}}); got != 0 {
		t.Errorf("retry after %v without a hint", got)
	}
}

// What a server says to a handshake stays so: the real errors of real servers.
func TestRefusedHandshakeIsNotTriedAgain(t *testing.T) {
	quiet := log.New(io.Discard, "", 0)
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = quiet
	// With TLS 1.3 the client learns only later what the server thinks of it.
	secure.TLS = &tls.Config{MaxVersion: tls.VersionTLS12, ClientAuth: tls.RequireAnyClientCert}
	secure.StartTLS()
	defer secure.Close()
	trusting := secure.Client()
	for story, test := range map[string]struct {
		client *http.Client
		url    string
	}{
		"other authority":       {http.DefaultClient, secure.URL},
		"no client certificate": {trusting, secure.URL},
		"not TLS":               {http.DefaultClient, strings.Replace(plain.URL, "http:", "https:", 1)},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, test.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := test.client.Do(request)
		if err == nil {
			_ = answer.Body.Close()
		}
		if err == nil || transient(err) {
			t.Errorf("%s: transient: %v", story, err)
		}
	}
}
