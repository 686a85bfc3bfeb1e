package vm

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// pending says whether a claim has no volume yet.
func pending(c *corev1.PersistentVolumeClaim) bool {
	return c != nil && c.Status.Phase != corev1.ClaimBound
}

// claimTrouble returns what went wrong with a claim that has no volume, "" if
// nothing did.
func (o Observed) claimTrouble() string {
	for _, claim := range []*corev1.PersistentVolumeClaim{o.OSClaim, o.DataClaim} {
		if !pending(claim) {
			continue
		}
		if claim.Status.Phase == corev1.ClaimLost {
			return "claim " + claim.Name + " lost its volume"
		}
		if e := o.lastWarning("PersistentVolumeClaim", claim.Name, string(claim.UID)); e != nil {
			return "claim " + claim.Name + ": " + e.Message
		}
	}
	return ""
}

// lastWarning returns the newest warning about an object. Events of an earlier
// object of that name do not count.
func (o Observed) lastWarning(kind, name, uid string) *corev1.Event {
	var last *corev1.Event
	for n := range o.Events {
		e := &o.Events[n]
		about := e.InvolvedObject
		if e.Type != corev1.EventTypeWarning || about.Kind != kind || about.Name != name ||
			uid != "" && about.UID != "" && string(about.UID) != uid {
			continue
		}
		if last == nil || seen(*last).Before(seen(*e)) {
			last = e
		}
	}
	return last
}

// seen is when an event last happened; who reports to the newer API leaves
// LastTimestamp empty.
func seen(e corev1.Event) time.Time {
	switch {
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	default:
		return e.CreationTimestamp.Time
	}
}
