package instance

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Cause is of what kind a failure is, as far as it matters for what to do.
type Cause string

// The kinds of failures.
const (
	CauseUnreachable     Cause = "unreachable"     // no answer came
	CauseUntrusted       Cause = "untrusted"       // TLS was not agreed on
	CauseUnauthenticated Cause = "unauthenticated" // the server does not know who asks
	CauseRefused         Cause = "refused"         // a quota, a webhook or the validation says no
	CauseTaken           Cause = "taken"           // somebody else writes the same object
	CauseUnserved        Cause = "unserved"        // the server does not know the kind
	CauseBusy            Cause = "busy"            // the server cannot answer for now
	CauseUnknown         Cause = "unknown"
)

// CauseOf tells the kind of a failure. A permission that lacks is [Denied]'s.
func CauseOf(err error) Cause {
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return causeOfStatus(status)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return CauseUntrusted
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "remote error" || op.Op == "local error") {
		return CauseUntrusted
	}
	switch {
	case strings.Contains(err.Error(), "getting credentials: "): // client-go's words for an exec plugin
		return CauseUnauthenticated
	case unanswerable(err), disconnected(err):
		return CauseUnreachable
	}
	return CauseUnknown
}

func causeOfStatus(err *apierrors.StatusError) Cause {
	code := err.Status().Code
	switch {
	case code == http.StatusUnauthorized:
		return CauseUnauthenticated
	case transient(err):
		return CauseBusy
	case code == http.StatusConflict:
		return CauseTaken
	case unserved(err):
		return CauseUnserved
	case code == http.StatusForbidden, code == http.StatusBadRequest, code == http.StatusUnprocessableEntity:
		return CauseRefused
	}
	return CauseUnknown
}
