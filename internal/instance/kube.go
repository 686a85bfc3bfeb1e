package instance

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What the store reads without a typed client.
func networkResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "k8s.cni.cncf.io", Version: "v1", Resource: "network-attachment-definitions"}
}

func dataVolumeResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"}
}

func storageProfileResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "storageprofiles"}
}

func operatorResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "dbaas.opencloud.wso2.com", Version: "v1alpha1", Resource: "dbinstances"}
}

// pause waits, or returns the context's error at once when it is over.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// backoff yields the pauses between tries of one request: growing, bounded,
// and jittered so that many instances of one apply do not knock in step.
type backoff struct{ next, longest time.Duration }

func (s *Store) backoff() backoff { return backoff{next: s.pace.first, longest: s.pace.longest} }

func (b *backoff) pause(ctx context.Context, least time.Duration) error {
	d := b.next/2 + rand.N(b.next)
	b.next = min(2*b.next, b.longest)
	return pause(ctx, max(d, least))
}

// retry sends one request again while the failure looks like one that passes,
// until the store's patience or the context's deadline ends. The last failure
// is what is returned: it says more than "deadline exceeded".
func retry[T any](ctx context.Context, s *Store, send func(context.Context) (T, error)) (T, error) {
	wait := s.backoff()
	end := time.Now().Add(s.pace.patience)
	for {
		result, err := send(ctx)
		if err == nil || !transient(err) || time.Now().After(end) {
			return result, err
		}
		if wait.pause(ctx, retryAfter(err)) != nil {
			return result, err
		}
	}
}

// retryAfter is how long the server asked to wait, if it did.
func retryAfter(err error) time.Duration {
	seconds, ok := apierrors.SuggestsClientDelay(err)
	if !ok {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// transient says whether the same request may well succeed a little later:
// the server is busy, restarting or behind a gateway, or the connection broke.
// A refusal on the merits (400, 401, 403, 404, 422, an object that exists) is not.
func transient(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		code := int(status.Status().Code)
		return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests ||
			code == http.StatusRequestTimeout || code == http.StatusGone ||
			(code == http.StatusConflict && status.Status().Reason == metav1.StatusReasonTimeout)
	}
	return disconnected(err)
}

// disconnected says whether no answer came, or only a part of one: then a write
// may or may not have taken effect. The transports have many words for that,
// most of them no exported errors; so it is told by where the error comes from,
// and by the few causes that another try does not change.
func disconnected(err error) bool {
	if unanswerable(err) {
		return false
	}
	_, sent := errors.AsType[*url.Error](err)
	return sent || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		strings.Contains(err.Error(), "error when reading response body") // client-go's words
}

// unanswerable says whether a request cannot reach the server as things are
// configured: its name, its or our certificate, or our credentials.
func unanswerable(err error) bool {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return !dns.IsTemporary && !dns.IsTimeout
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "remote error" || op.Op == "local error") {
		return true // an alert of TLS
	}
	for _, words := range []string{"server gave HTTP response to HTTPS client", "unsupported protocol scheme", "getting credentials: "} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

// refused says whether the server certainly did not carry out the write.
func refused(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && !transient(err)
}

// objectNotFound says whether the server knows the kind and has no such
// object. A 404 of an API group that is not served (an uninstalled or
// restarting KubeVirt) is something else: nothing may be concluded from it.
func objectNotFound(err error) bool {
	if !apierrors.IsNotFound(err) {
		return false
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.Status().Details == nil {
		return false
	}
	details := status.Status().Details
	if details.Name == "" {
		return false
	}
	for _, cause := range details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			return false
		}
	}
	return true
}
