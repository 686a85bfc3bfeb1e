package instance

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Denial is a permission that the account lacks.
type Denial struct {
	Verb, Resource, Group string
	Namespace             string // empty for what has no namespace
}

// Denied returns the permission that is missing when the API server's
// authorizer refused a request. A 403 of a quota or of a webhook is none.
func Denied(err error) (Denial, bool) {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsForbidden(err) {
		return Denial{}, false
	}
	// The verb is nowhere but in the sentence.
	sentence := regexp.MustCompile(`cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?`)
	m := sentence.FindStringSubmatch(status.Status().Message)
	if m == nil {
		return Denial{}, false
	}
	return Denial{Verb: m[1], Resource: m[2], Group: m[3], Namespace: m[4]}, true
}

// goWithout reports what is not done, or done otherwise, for lack of a rule that
// one can do without.
func (s *Store) goWithout(ctx context.Context, what string, err error) {
	if d, ok := Denied(err); ok {
		s.report(ctx, fmt.Sprintf("%s: the verb %s on %s is missing", what, d.Verb, d.Resource))
	}
}
