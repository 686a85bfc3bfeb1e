package vm

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// eventLimit bounds how many warnings a Detail quotes.
const eventLimit = 3

// detail tells what was seen, most general first: the VM, its instance, the
// claims, the newest warnings, and the guest's own words.
func (o Observed) detail() string {
	if o.VM == nil {
		return "The virtual machine does not exist."
	}
	parts := []string{o.tellVM()}
	parts = append(parts, o.tellVMI()...)
	parts = append(parts, o.tellClaims()...)
	parts = append(parts, o.tellEvents()...)
	parts = append(parts, o.tellGuest()...)
	if o.MetricsFault != "" {
		parts = append(parts, "Its metrics are not read: "+o.MetricsFault)
	}
	for i, p := range parts {
		parts[i] = strings.TrimRight(strings.TrimSpace(p), ".") + "."
	}
	return strings.Join(parts, " ")
}

func (o Observed) tellVM() string {
	status := o.VM.Status.PrintableStatus
	if status == "" {
		status = "not yet reported"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Virtual machine %s: status %s", o.VM.Name, status)
	if q := o.VM.Annotations[AnnotationQuota]; q != "" && !WantsRunning(o.VM) {
		text.WriteString(", halted by Harvester for lack of quota: " + q)
	}
	if f := o.VM.Status.StartFailure; f != nil && f.ConsecutiveFailCount > 0 {
		fmt.Fprintf(&text, ", failed to start %d times in a row", f.ConsecutiveFailCount)
	}
	if n := len(o.Failed); n > 1 {
		fmt.Fprintf(&text, ", %d machines in a row were seen to fail", n)
	}
	for _, c := range o.VM.Status.Conditions {
		if c.Type == kubevirtv1.VirtualMachineFailure && c.Status == corev1.ConditionTrue {
			fmt.Fprintf(&text, ", failure %s: %s", c.Reason, c.Message)
		}
	}
	return text.String()
}

func (o Observed) tellVMI() []string {
	if o.VMI == nil {
		return []string{"No instance of it runs"}
	}
	phase := o.VMI.Status.Phase
	if phase == "" {
		phase = "not yet reported"
	}
	parts := []string{"Its instance: phase " + string(phase)}
	for _, c := range o.VMI.Status.Conditions {
		switch c.Type { // the others do not bear on availability
		case podScheduled, kubevirtv1.VirtualMachineInstanceReady, kubevirtv1.VirtualMachineInstanceSynchronized:
			if c.Status != corev1.ConditionTrue {
				parts = append(parts, "Condition "+string(c.Type)+" is "+string(c.Status)+because(c.Reason, c.Message))
			}
		case kubevirtv1.VirtualMachineInstancePaused:
			if c.Status == corev1.ConditionTrue {
				parts = append(parts, "It is paused")
			}
		}
	}
	if running(o.VMI) && Address(o.VMI) == "" {
		parts = append(parts, o.tellAddresses())
	}
	return parts
}

func because(reason, message string) string {
	switch {
	case reason == "" && message == "":
		return ""
	case message == "":
		return " (" + reason + ")"
	case reason == "":
		return ": " + message
	}
	return " (" + reason + "): " + message
}

// tellAddresses says which addresses there are when none of them will do.
func (o Observed) tellAddresses() string {
	var seen []string
	for _, nic := range o.VMI.Status.Interfaces {
		for _, a := range nic.IPs {
			seen = append(seen, a+" on "+nic.Name)
		}
	}
	text := "No usable address on interface " + DataNetwork
	if len(seen) > 0 {
		text += "; there is only " + strings.Join(seen, ", ")
	}
	if c := vmiCondition(o.VMI, kubevirtv1.VirtualMachineInstanceAgentConnected); c == nil || c.Status != corev1.ConditionTrue {
		text += "; the guest agent is not connected"
	}
	return text
}

func (o Observed) tellClaims() []string {
	var parts []string
	for _, c := range []*corev1.PersistentVolumeClaim{o.OSClaim, o.DataClaim} {
		if pending(c) {
			phase := c.Status.Phase
			if phase == "" {
				phase = corev1.ClaimPending
			}
			parts = append(parts, fmt.Sprintf("Claim %s is %s", c.Name, phase))
		}
	}
	if recorded := o.VM.Annotations[AnnotationDataVolumeUID]; o.dataReplaced() {
		text := fmt.Sprintf("The data was on the volume of the claim with uid %s, which is gone", recorded)
		if o.DataClaim != nil {
			text += fmt.Sprintf("; claim %s with uid %s is another one", o.DataClaim.Name, o.DataClaim.UID)
		}
		parts = append(parts, text)
	}
	return parts
}

// tellEvents quotes the newest warnings.
func (o Observed) tellEvents() []string {
	var warnings []corev1.Event
	for _, e := range o.Events {
		if e.Type == corev1.EventTypeWarning && !strings.Contains(e.Message, conflict) {
			warnings = append(warnings, e)
		}
	}
	slices.SortStableFunc(warnings, func(a, b corev1.Event) int { return seen(b).Compare(seen(a)) })
	var parts []string
	if o.EventsUnread != "" {
		parts = append(parts, "What events tell is not known: "+o.EventsUnread)
	}
	for _, e := range warnings[:min(len(warnings), eventLimit)] {
		parts = append(parts, fmt.Sprintf("Event on %s %s (%s): %s",
			e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, strings.TrimSpace(e.Message)))
	}
	return parts
}

func (o Observed) tellGuest() []string {
	last, failure := Words(o.Console)
	switch {
	case failure != nil:
		return []string{"The guest says: " + failure.String()}
	case last != nil:
		return []string{"The guest says: " + last.String()}
	case o.ConsoleUnread != "":
		return []string{"The guest's console was not read: " + o.ConsoleUnread}
	case o.Console != "":
		return []string{"The guest has said nothing of the database on its console yet"}
	}
	return nil
}
