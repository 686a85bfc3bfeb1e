package vm

import (
	"strings"
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
		if e := o.provisioning(claim); e != nil && e.Type == corev1.EventTypeWarning && !strings.Contains(e.Message, conflict) {
			return "claim " + claim.Name + ": " + e.Message
		}
	}
	return ""
}

// conflict is in the message of a failure that means nothing: the provisioner
// met another writer, and tries again at once.
const conflict = "the object has been modified"

// provisioning returns what the provisioner last said about a claim. Others
// speak of it too: Kubernetes says again and again that it waits. Events of an
// earlier claim of that name do not count.
func (o Observed) provisioning(claim *corev1.PersistentVolumeClaim) *corev1.Event {
	var last *corev1.Event
	for n := range o.Events {
		e := &o.Events[n]
		about := e.InvolvedObject
		if about.Kind != "PersistentVolumeClaim" || about.Name != claim.Name || !strings.HasPrefix(e.Reason, "Provisioning") ||
			about.UID != "" && about.UID != claim.UID {
			continue
		}
		// Times are whole seconds; of one second the failure is the later.
		if last == nil || seen(*last).Before(seen(*e)) || seen(*last).Equal(seen(*e)) && e.Type == corev1.EventTypeWarning {
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
