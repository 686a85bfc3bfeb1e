package vm

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// Assess says what an observed instance's state is. It never looks at the
// condition RestartRequired, which KubeVirt may leave standing, nor at
// printableStatus where the VMI says it better.
func Assess(o Observed) State {
	s := o.judge()
	s.Detail = o.detail()
	return s
}

func (o Observed) judge() State {
	var address string
	if running(o.VMI) { // an ended machine's status still has its addresses
		address = Address(o.VMI)
	}
	switch {
	case o.VM == nil:
		return State{Status: StatusFailed, Reason: ReasonVMMissing, Hopeless: true}
	case o.VM.DeletionTimestamp != nil:
		return State{Status: StatusDeleting}
	case o.dataReplaced():
		return State{Status: StatusFailed, Reason: ReasonDataVolumeReplaced, Address: address, Hopeless: true}
	case o.quota() != "":
		// A halted VM stays halted; a refused pod is tried again.
		return o.broken(ReasonQuotaExceeded, WantsRunning(o.VM))
	case !WantsRunning(o.VM) || o.endedForGood():
		return o.halted()
	case o.crashes() >= crashLimit && !o.ready(address):
		s := o.broken(ReasonCrashLoop, false)
		s.Address = address
		return s
	case o.VMI == nil || o.VMI.DeletionTimestamp != nil || !o.VMI.IsRunning():
		return o.rising()
	}
	s := o.running(address)
	s.Address = address
	return s
}

// operated says whether the DBaaS operator made the instance.
func (o Observed) operated() bool { return o.OperatorManaged || OperatorManaged(o.VM) }

// ever says whether the instance was available at some time.
func (o Observed) ever() bool { return o.EverAvailable || o.VM != nil && EverAvailable(o.VM) }

// dataReplaced says whether another volume stands where the data was: Harvester
// makes a new, blank one when a claim of a VM is lost.
func (o Observed) dataReplaced() bool {
	recorded := o.VM.Annotations[AnnotationDataVolumeUID]
	if recorded == "" {
		return false
	}
	return o.DataClaimMissing || o.DataClaim != nil && string(o.DataClaim.UID) != recorded
}

// quota returns why the namespace's quota forbids the machine. Harvester halts
// such a VM and says so in an annotation. It leaves the annotation on a halted
// VM, so whoever halts a VM himself has to remove it.
func (o Observed) quota() string {
	if running(o.VMI) {
		return ""
	}
	if m := o.VM.Annotations[AnnotationQuota]; m != "" && !WantsRunning(o.VM) {
		return m
	}
	if c := vmiCondition(o.VMI, kubevirtv1.VirtualMachineInstanceSynchronized); c != nil &&
		c.Status == corev1.ConditionFalse && strings.Contains(c.Message, "exceeded quota") {
		return c.Message
	}
	return ""
}

func running(i *kubevirtv1.VirtualMachineInstance) bool { return i != nil && i.IsRunning() }

// endedForGood says whether the machine ended and KubeVirt will not start it
// again: strategies other than Always leave one down that powered itself off.
func (o Observed) endedForGood() bool { return endedForGood(o.VM, o.VMI) }

func endedForGood(v *kubevirtv1.VirtualMachine, i *kubevirtv1.VirtualMachineInstance) bool {
	s := v.Spec.RunStrategy
	if s == nil || *s == kubevirtv1.RunStrategyAlways {
		return false
	}
	return v.Status.PrintableStatus == kubevirtv1.VirtualMachineStatusStopped && (i == nil || i.IsFinal())
}

// KeptRunning says whether a VM is meant to run and KubeVirt keeps it so.
func KeptRunning(v *kubevirtv1.VirtualMachine, i *kubevirtv1.VirtualMachineInstance) bool {
	return WantsRunning(v) && !endedForGood(v, i)
}

func (o Observed) halted() State {
	if o.VMI != nil && !o.VMI.IsFinal() {
		return State{Status: StatusStopping}
	}
	return o.finished(State{Status: StatusStopped})
}

// rising judges a machine that is to run and does not yet.
func (o Observed) rising() State {
	switch reason := o.waitingFor(); {
	case failed(o.VMI) && o.ever():
		return State{Status: StatusDegraded, Reason: ReasonCrashLoop}
	case o.crashes() > 0:
		return o.progress(ReasonCrashLoop)
	case reason == ReasonUnschedulable || reason == ReasonClaimPending:
		return o.broken(reason, true)
	default:
		return o.progress(reason)
	}
}

// crashes is how many machines of the VM failed in a row.
func (o Observed) crashes() int {
	n := len(o.Failed)
	if failed(o.VMI) {
		n = max(n, 1)
	}
	if f := o.VM.Status.StartFailure; f != nil {
		n = max(n, f.ConsecutiveFailCount)
	}
	return n
}

// ready says whether the machine runs and its database answers at an address.
func (o Observed) ready(address string) bool {
	c := vmiCondition(o.VMI, kubevirtv1.VirtualMachineInstanceReady)
	return running(o.VMI) && o.VMI.DeletionTimestamp == nil && address != "" && c != nil && c.Status == corev1.ConditionTrue
}

// waitingFor says what keeps the machine from running.
func (o Observed) waitingFor() Reason {
	if o.claimTrouble() != "" {
		return ReasonClaimPending
	}
	if c := vmiCondition(o.VMI, podScheduled); c != nil && c.Status == corev1.ConditionFalse &&
		c.Reason == corev1.PodReasonUnschedulable {
		if waitsForClaim(c.Message) {
			return ReasonStorageProvisioning
		}
		return ReasonUnschedulable
	}
	// The other statuses say less than the VMI's phase.
	switch o.VM.Status.PrintableStatus {
	case kubevirtv1.VirtualMachineStatusDataVolumeError:
		return ReasonClaimPending
	case kubevirtv1.VirtualMachineStatusProvisioning, kubevirtv1.VirtualMachineStatusWaitingForVolumeBinding,
		kubevirtv1.VirtualMachineStatusPvcNotFound:
		return ReasonStorageProvisioning
	}
	switch {
	case pending(o.OSClaim) || pending(o.DataClaim):
		return ReasonStorageProvisioning
	case o.VMI != nil && o.VMI.Status.Phase == kubevirtv1.Scheduled:
		return ReasonBooting
	default:
		return ReasonScheduling
	}
}

const podScheduled = kubevirtv1.VirtualMachineInstanceConditionType(corev1.PodScheduled)

// waitsForClaim tells a machine that fits nowhere from one whose volumes are
// still being made: Kubernetes and KubeVirt call both Unschedulable.
func waitsForClaim(message string) bool {
	m := strings.ToLower(message)
	return strings.Contains(m, "persistentvolumeclaim") || strings.Contains(m, "pvc")
}

// running judges a machine that runs.
func (o Observed) running(address string) State {
	if o.ready(address) {
		return o.finished(State{Status: StatusAvailable, Available: true})
	}
	if o.ever() && !o.operated() && !o.applied() {
		// Whatever it lacks, it is not what the machine shall run with.
		return State{Status: StatusDegraded, Reason: ReasonPendingRestart}
	}
	if _, failure := Words(o.Console); failure != nil {
		return o.broken(ReasonGuestFailed, false)
	}
	paused := vmiCondition(o.VMI, kubevirtv1.VirtualMachineInstancePaused)
	agent := vmiCondition(o.VMI, kubevirtv1.VirtualMachineInstanceAgentConnected)
	connected := agent != nil && agent.Status == corev1.ConditionTrue
	reason := ReasonConfiguringDatabase
	switch {
	case paused != nil && paused.Status == corev1.ConditionTrue:
		reason = ReasonNotReady
	case address == "" && !connected && !o.ever():
		reason = ReasonBooting
	case address == "":
		reason = ReasonNoAddress
	case o.ever():
		reason = ReasonNotReady
	}
	if o.ever() {
		return State{Status: StatusDegraded, Reason: reason}
	}
	return State{Status: StatusCreating, Reason: reason}
}

// broken is the state of a machine that cannot run as things are; mayHeal says
// that they may change by themselves.
func (o Observed) broken(reason Reason, mayHeal bool) State {
	s := State{Status: StatusFailed, Reason: reason, Hopeless: true}
	if o.ever() {
		s.Status = StatusDegraded
	}
	if mayHeal {
		s.Grace = grace
	}
	return s
}

// progress is the state of a machine on its way.
func (o Observed) progress(reason Reason) State {
	if o.ever() {
		return State{Status: StatusStarting, Reason: reason}
	}
	return State{Status: StatusCreating, Reason: reason}
}

// finished adds what is left to do, or else to know, about a machine that is
// where it is meant to be.
func (o Observed) finished(s State) State {
	switch {
	case o.operated():
		s.Reason = ReasonOperatorManaged
	case o.BootstrapMaterial:
		s.Reason = ReasonBootstrapMaterialPresent
	case o.RotationPending:
		s.Reason = ReasonPasswordRotationPending
	case s.Available && !o.applied():
		s.Reason = ReasonPendingRestart
	case s.Available && o.MetricsFault != "":
		s.Reason = ReasonMetricsAddressStale
	case o.CredentialsMissing:
		// It may stay so for ever, and must not hide what an apply can mend.
		s.Reason = ReasonCredentialsMissing
	}
	return s
}

// applied says whether the guest runs with the configuration and in the shape
// that are written down: what it booted with is what its VMI carries.
func (o Observed) applied() bool {
	guest := o.VMI.Annotations[AnnotationConfigHash]
	if guest != TemplateHash(o.VM) || o.SecretHash != "" && guest != o.SecretHash {
		return false
	}
	vcpu, memory := Shape(o.VM)
	hasVCPU, hasMemory := MachineShape(o.VMI)
	return hasVCPU == 0 || vcpu == hasVCPU && memory == hasMemory
}

func vmiCondition(i *kubevirtv1.VirtualMachineInstance, kind kubevirtv1.VirtualMachineInstanceConditionType) *kubevirtv1.VirtualMachineInstanceCondition {
	if i == nil {
		return nil
	}
	for n := range i.Status.Conditions {
		if i.Status.Conditions[n].Type == kind {
			return &i.Status.Conditions[n]
		}
	}
	return nil
}
