package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// status is the part of Kubernetes' metav1.Status that clients look at.
type status struct {
	Kind       string   `json:"kind"`
	APIVersion string   `json:"apiVersion"`
	Metadata   struct{} `json:"metadata"`
	Status     string   `json:"status"`
	Message    string   `json:"message"`
	Reason     string   `json:"reason"`
	Details    *details `json:"details,omitempty"`
	Code       int      `json:"code"`
}

type details struct {
	RetryAfterSeconds int `json:"retryAfterSeconds,omitempty"`
}

// reason is the word that API servers send with a code. 410 is Expired, not
// Gone: that is what a resource version that is too old gets.
func reason(code int) string {
	switch code {
	case http.StatusBadRequest:
		return "BadRequest"
	case http.StatusUnauthorized:
		return "Unauthorized"
	case http.StatusForbidden:
		return "Forbidden"
	case http.StatusNotFound:
		return "NotFound"
	case http.StatusMethodNotAllowed:
		return "MethodNotAllowed"
	case http.StatusConflict:
		return "Conflict"
	case http.StatusGone:
		return "Expired"
	case http.StatusUnprocessableEntity:
		return "Invalid"
	case http.StatusTooManyRequests:
		return "TooManyRequests"
	case http.StatusInternalServerError:
		return "InternalError"
	case http.StatusServiceUnavailable:
		return "ServiceUnavailable"
	case http.StatusGatewayTimeout:
		return "Timeout"
	}
	return ""
}

func newStatus(code int, word string) status {
	if word == "" {
		word = reason(code)
	}
	return status{
		Kind: "Status", APIVersion: "v1", Status: "Failure", Code: code, Reason: word,
		Message: fmt.Sprintf("injected fault: %d %s", code, word),
	}
}

func writeStatus(w http.ResponseWriter, r Rule) {
	s := newStatus(r.Status, r.Reason)
	if r.RetryAfter > 0 {
		s.Details = &details{RetryAfterSeconds: r.RetryAfter}
		w.Header().Set("Retry-After", strconv.Itoa(r.RetryAfter))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.Status)
	_ = json.NewEncoder(w).Encode(s) // a client that left is not our problem
}
