package faults

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Watch is the Method of a GET that opens a watch. GET alone never means one.
const Watch = "WATCH"

// Action is what happens to a request.
type Action string

// The actions, and the fields of Rule that each reads.
const (
	// Answer answers with Status, Reason and RetryAfter instead of the server.
	Answer Action = "answer"
	// Cut resets the client's connection. All of the connection, as a killed
	// server or a lost route does it: with HTTP/2 every request that shares it.
	Cut Action = "cut"
	// Delay holds the request back, then passes it on.
	Delay Action = "delay"
	// EndWatch ends a watch's stream as a server's timeout does, after Events
	// or After; with neither, as soon as it was opened.
	EndWatch Action = "end-watch"
	// CutWatch is EndWatch by a connection reset.
	CutWatch Action = "cut-watch"
	// ExpireWatch is EndWatch with an ERROR event 410 Expired at the end.
	ExpireWatch Action = "expire-watch"
	// Stale answers a GET with an answer that it got before: see Snapshot.
	Stale Action = "stale"
)

// Snapshots that Stale can answer with.
const (
	// First is the first answer since Reset.
	First = "first"
	// Marked is the last answer before Mark.
	Marked = "marked"
)

// Rule says which requests are disturbed, and how. Its zero fields do not
// restrict: a rule with only an action disturbs the next request.
type Rule struct {
	// Method is GET, POST, … or WATCH; several are separated by commas.
	Method string `json:"method,omitempty"`
	// Path is a regular expression, found anywhere in path?query.
	Path string `json:"path,omitempty"`
	// Index is the first request, counted from Reset over all, that can match.
	Index int `json:"index,omitempty"`
	// Nth is the match at which the rule fires first: 1, if not given.
	Nth int `json:"nth,omitempty"`
	// Times is how many matches in a row it disturbs: 0 means 1, -1 all.
	Times int `json:"times,omitempty"`

	Action Action `json:"action"`
	// Effect lets the request first reach the server and be answered there; the
	// client gets the Answer or the Cut instead of what the server said.
	Effect bool `json:"effect,omitempty"`
	// Delay holds the request back before the action. With Effect it still
	// reaches the server if the client has left in the meantime.
	Delay Duration `json:"delay,omitempty"`
	// Status is an HTTP status from 400 to 599.
	Status int `json:"status,omitempty"`
	// Reason replaces the reason that belongs to Status, such as AlreadyExists
	// for 409.
	Reason string `json:"reason,omitempty"`
	// RetryAfter is in seconds; 0 sends no such header.
	RetryAfter int `json:"retryAfter,omitempty"`
	// Events is how many events of a watch still arrive.
	Events int `json:"events,omitempty"`
	// After is how long a watch stays open.
	After Duration `json:"after,omitempty"`
	// Snapshot is First (if not given) or Marked. A request without such an
	// answer passes, and does not count as a match.
	Snapshot string `json:"snapshot,omitempty"`
}

// String is the fault's name in the record.
func (r Rule) String() string {
	s := string(r.Action)
	switch r.Action {
	case Answer:
		s = fmt.Sprintf("%s %d", s, r.Status)
	case Stale:
		s += " " + r.Snapshot
	}
	if r.Effect {
		s += " after effect"
	}
	return s
}

func (a Action) onStream() bool { return a == EndWatch || a == CutWatch || a == ExpireWatch }

// Duration is a time.Duration that JSON writes as 1m30s.
type Duration time.Duration

// MarshalText writes 1m30s.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads 1m30s.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}

// armed is a rule and what became of it.
type armed struct {
	Rule
	methods     []string
	path        *regexp.Regexp
	seen, fired int
}

func arm(r Rule) (*armed, error) {
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("arm rule: %w", err)
	}
	if r.Action == Stale && r.Snapshot == "" {
		r.Snapshot = First
	}
	path, err := regexp.Compile(r.Path)
	if err != nil {
		return nil, fmt.Errorf("arm rule: path: %w", err)
	}
	a := &armed{Rule: r, path: path}
	if r.Method != "" {
		a.methods = strings.Split(strings.ReplaceAll(strings.ToUpper(r.Method), " ", ""), ",")
	}
	return a, nil
}

// check refuses what would silently do nothing.
func (r Rule) check() error {
	switch r.Action {
	case Answer, Cut, Delay, EndWatch, CutWatch, ExpireWatch, Stale:
	default:
		return fmt.Errorf("unknown action %q", r.Action)
	}
	negative := r.Index < 0 || r.Nth < 0 || r.Times < -1 || r.RetryAfter < 0 || r.Events < 0 || r.Delay < 0 || r.After < 0
	switch {
	case negative:
		return errors.New("a count or a time is negative")
	case r.Action == Answer && (r.Status < http.StatusBadRequest || r.Status > 599):
		return fmt.Errorf("status %d is not one of 400 to 599", r.Status)
	case r.Action != Answer && (r.Status != 0 || r.Reason != "" || r.RetryAfter != 0):
		return fmt.Errorf("action %s takes no status, reason or retryAfter", r.Action)
	case r.Effect && r.Action != Answer && r.Action != Cut:
		return fmt.Errorf("action %s takes no effect", r.Action)
	case !r.Action.onStream() && (r.Events != 0 || r.After != 0):
		return fmt.Errorf("action %s takes no events or after", r.Action)
	case r.Action == Delay && r.Delay == 0:
		return errors.New("action delay without a delay")
	case r.Action != Stale && r.Snapshot != "", r.Snapshot != "" && r.Snapshot != First && r.Snapshot != Marked:
		return fmt.Errorf("action %s takes no snapshot %q", r.Action, r.Snapshot)
	}
	return nil
}

// due counts a request that the rule matches and reports whether it fires.
func (a *armed) due(e *Entry, old *versions) bool {
	if !a.matches(e, old) {
		return false
	}
	a.seen++
	return a.seen >= a.Nth && (a.Times == -1 || a.fired < max(1, a.Times))
}

func (a *armed) matches(e *Entry, old *versions) bool {
	switch {
	case e.Index < a.Index, !a.path.MatchString(e.Path):
		return false
	case a.methods != nil && !slices.Contains(a.methods, e.Method):
		return false
	case a.Action.onStream():
		return e.Method == Watch
	case a.Action == Stale:
		return e.Method == http.MethodGet && old.get(a.Snapshot) != nil
	}
	return true
}
