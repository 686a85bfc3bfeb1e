package vm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// observed is an instance that is available and has nothing left to do.
func observed(t *testing.T, changes ...func(*vm.Observed)) vm.Observed {
	t.Helper()
	v, err := vm.Build(desired())
	if err != nil {
		t.Fatal(err)
	}
	v.Annotations[vm.AnnotationDataVolumeUID] = "data-uid"
	v.Annotations[vm.AnnotationAvailableSince] = "2026-11-30T13:00:00Z"
	v.Status.PrintableStatus = kubevirtv1.VirtualMachineStatusRunning
	i := &kubevirtv1.VirtualMachineInstance{}
	i.Name = v.Name
	i.Annotations = map[string]string{vm.AnnotationConfigHash: "c0ffee"}
	i.Status.Phase = kubevirtv1.Running
	i.Status.Interfaces = []kubevirtv1.VirtualMachineInstanceNetworkInterface{{Name: vm.DataNetwork, IP: "198.18.1.10"}}
	i.Status.Conditions = []kubevirtv1.VirtualMachineInstanceCondition{
		{Type: kubevirtv1.VirtualMachineInstanceAgentConnected, Status: corev1.ConditionTrue},
		{Type: kubevirtv1.VirtualMachineInstanceReady, Status: corev1.ConditionTrue},
	}
	o := vm.Observed{
		VM: v, VMI: i, SecretHash: "c0ffee",
		OSClaim:   claim("pg-orders-os", "os-uid", corev1.ClaimBound),
		DataClaim: claim("pg-orders-data", "data-uid", corev1.ClaimBound),
	}
	for _, change := range changes {
		change(&o)
	}
	return o
}

func claim(name, uid string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: phase},
	}
}

// Changes to an observed instance.

func neverAvailable(o *vm.Observed) { delete(o.VM.Annotations, vm.AnnotationAvailableSince) }

func fresh(o *vm.Observed) {
	neverAvailable(o)
	delete(o.VM.Annotations, vm.AnnotationDataVolumeUID)
}

func noInstance(o *vm.Observed) { o.VMI = nil }

func printable(s kubevirtv1.VirtualMachinePrintableStatus) func(*vm.Observed) {
	return func(o *vm.Observed) { o.VM.Status.PrintableStatus = s }
}

func strategy(s kubevirtv1.VirtualMachineRunStrategy) func(*vm.Observed) {
	return func(o *vm.Observed) { o.VM.Spec.RunStrategy = &s }
}

func phase(p kubevirtv1.VirtualMachineInstancePhase) func(*vm.Observed) {
	return func(o *vm.Observed) {
		o.VMI.Status.Phase = p
		condition(kubevirtv1.VirtualMachineInstanceReady, corev1.ConditionFalse, "GuestNotRunning", "Guest VM is not reported as running")(o)
		if p != kubevirtv1.Running {
			o.VMI.Status.Interfaces = nil
		}
	}
}

func condition(kind kubevirtv1.VirtualMachineInstanceConditionType, s corev1.ConditionStatus, reason, message string) func(*vm.Observed) {
	return func(o *vm.Observed) {
		c := kubevirtv1.VirtualMachineInstanceCondition{Type: kind, Status: s, Reason: reason, Message: message}
		for n := range o.VMI.Status.Conditions {
			if o.VMI.Status.Conditions[n].Type == kind {
				o.VMI.Status.Conditions[n] = c
				return
			}
		}
		o.VMI.Status.Conditions = append(o.VMI.Status.Conditions, c)
	}
}

func unscheduled(message string) func(*vm.Observed) {
	return condition(kubevirtv1.VirtualMachineInstanceConditionType(corev1.PodScheduled),
		corev1.ConditionFalse, corev1.PodReasonUnschedulable, message)
}

func notReady(o *vm.Observed) {
	condition(kubevirtv1.VirtualMachineInstanceReady, corev1.ConditionFalse, "ContainersNotReady", "containers with unready status: [compute]")(o)
}

func staleMetrics(o *vm.Observed) {
	o.MetricsFault = "endpoints pg-orders-metrics are not as they should be"
}

func noAgent(o *vm.Observed) {
	condition(kubevirtv1.VirtualMachineInstanceAgentConnected, corev1.ConditionFalse, "", "")(o)
}

func addresses(a ...string) func(*vm.Observed) {
	return func(o *vm.Observed) {
		o.VMI.Status.Interfaces = []kubevirtv1.VirtualMachineInstanceNetworkInterface{{Name: vm.DataNetwork, IPs: a}}
	}
}

func claimPending(o *vm.Observed) {
	o.DataClaim.Status.Phase = corev1.ClaimPending
}

func warning(kind, name, uid, message string) func(*vm.Observed) {
	return func(o *vm.Observed) {
		o.Events = append(o.Events, corev1.Event{
			Type: corev1.EventTypeWarning, Reason: "ProvisioningFailed", Message: message,
			InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name, UID: types.UID(uid)},
		})
	}
}

// said adds a word of routine about the data claim.
func said(reason string, second int64) func(*vm.Observed) {
	return func(o *vm.Observed) {
		o.Events = append(o.Events, corev1.Event{
			Type: corev1.EventTypeNormal, Reason: reason, LastTimestamp: metav1.Time{Time: time.Unix(second, 0)},
			InvolvedObject: corev1.ObjectReference{Kind: "PersistentVolumeClaim", Name: "pg-orders-data", UID: "data-uid"},
		})
	}
}

func crashes(n int) func(*vm.Observed) {
	return func(o *vm.Observed) {
		o.VM.Status.StartFailure = &kubevirtv1.VirtualMachineStartFailure{ConsecutiveFailCount: n}
	}
}

// machineFailed has the VM's machine of that uid fail, machineUp has it run.
func machineFailed(uid types.UID) func(*vm.Observed) {
	return func(o *vm.Observed) {
		i := o.VMI.DeepCopy()
		i.UID, i.Status.Phase = uid, kubevirtv1.Failed
		o.See(i)
	}
}

func machineUp(uid types.UID) func(*vm.Observed) {
	return func(o *vm.Observed) {
		i := o.VMI.DeepCopy()
		i.UID, i.Status.Phase = uid, kubevirtv1.Running
		o.See(i)
	}
}

func console(text string) func(*vm.Observed) { return func(o *vm.Observed) { o.Console = text } }

func deleting(m metav1.Object) { m.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)}) }

const guestFailure = "dbaas: step=install state=failed reason=\"PostgreSQL 16 is not to be had\"\n"

func TestAssess(t *testing.T) {
	type change = func(*vm.Observed)
	const address = "198.18.1.10"
	for name, test := range map[string]struct {
		changes []change
		want    vm.State
	}{
		// Available, and what may be left to do then.
		"available":                     {nil, vm.State{Status: "available", Available: true, Address: address}},
		"available for the first time":  {[]change{fresh}, vm.State{Status: "available", Available: true, Address: address}},
		"available while it migrates":   {[]change{printable("Migrating")}, vm.State{Status: "available", Available: true, Address: address}},
		"a stale RestartRequired":       {[]change{restartRequired}, vm.State{Status: "available", Available: true, Address: address}},
		"bootstrap material is left":    {[]change{func(o *vm.Observed) { o.BootstrapMaterial = true }}, vm.State{Status: "available", Reason: "BootstrapMaterialPresent", Available: true, Address: address}},
		"the Secret was removed":        {[]change{func(o *vm.Observed) { o.CredentialsMissing = true }}, vm.State{Status: "available", Reason: "CredentialsMissing", Available: true, Address: address}},
		"template ahead of the guest":   {[]change{templateHash("beef"), func(o *vm.Observed) { o.SecretHash = "beef" }}, vm.State{Status: "available", Reason: "PendingRestart", Available: true, Address: address}},
		"the metrics' address is old":   {[]change{staleMetrics}, vm.State{Status: "available", Reason: "MetricsAddressStale", Available: true, Address: address}},
		"that, and the Secret removed":  {[]change{staleMetrics, func(o *vm.Observed) { o.CredentialsMissing = true }}, vm.State{Status: "available", Reason: "MetricsAddressStale", Available: true, Address: address}},
		"a restart mends that too":      {[]change{staleMetrics, templateHash("beef")}, vm.State{Status: "available", Reason: "PendingRestart", Available: true, Address: address}},
		"Secret ahead of the template":  {[]change{func(o *vm.Observed) { o.SecretHash = "beef" }}, vm.State{Status: "available", Reason: "PendingRestart", Available: true, Address: address}},
		"the operator's, by its label":  {[]change{func(o *vm.Observed) { o.VM.Labels[vm.LabelCreator] = vm.OperatorCreator }}, vm.State{Status: "available", Reason: "OperatorManaged", Available: true, Address: address}},
		"the operator's, by a resource": {[]change{func(o *vm.Observed) { o.OperatorManaged = true }}, vm.State{Status: "available", Reason: "OperatorManaged", Available: true, Address: address}},

		// On the way to the first availability.
		"just created":                       {[]change{fresh, noInstance, printable("")}, vm.State{Status: "creating", Reason: "Scheduling"}},
		"just created, called Stopped":       {[]change{fresh, noInstance, printable("Stopped")}, vm.State{Status: "creating", Reason: "Scheduling"}},
		"claims are not made yet":            {[]change{fresh, phase("Pending"), printable("ErrorPvcNotFound"), unscheduled("PVC tenant-acme/pg-orders-os does not exist")}, vm.State{Status: "creating", Reason: "StorageProvisioning"}},
		"claims are not bound yet":           {[]change{fresh, phase("Scheduling"), printable("WaitingForVolumeBinding"), claimPending}, vm.State{Status: "creating", Reason: "StorageProvisioning"}},
		"pod waits for claims":               {[]change{fresh, phase("Scheduling"), printable("ErrorUnschedulable"), unscheduled("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims.")}, vm.State{Status: "creating", Reason: "StorageProvisioning"}},
		"claim pending with an error":        {[]change{fresh, phase("Scheduling"), claimPending, warning("PersistentVolumeClaim", "pg-orders-data", "data-uid", "no space")}, vm.State{Status: "failed", Reason: "ClaimPending", Hopeless: true, Grace: 30 * time.Second}},
		"an error of an earlier claim":       {[]change{fresh, phase("Scheduling"), claimPending, warning("PersistentVolumeClaim", "pg-orders-data", "old-uid", "no space")}, vm.State{Status: "creating", Reason: "StorageProvisioning"}},
		"the provisioner tries again":        {[]change{fresh, phase("Scheduling"), claimPending, warning("PersistentVolumeClaim", "pg-orders-data", "data-uid", "no space"), said("Provisioning", 2)}, vm.State{Status: "creating", Reason: "StorageProvisioning"}},
		"Kubernetes goes on waiting":         {[]change{fresh, phase("Scheduling"), claimPending, warning("PersistentVolumeClaim", "pg-orders-data", "data-uid", "no space"), said("ExternalProvisioning", 2)}, vm.State{Status: "failed", Reason: "ClaimPending", Hopeless: true, Grace: 30 * time.Second}},
		"the provisioner met another writer": {[]change{fresh, phase("Scheduling"), claimPending, warning("PersistentVolumeClaim", "pg-orders-data", "data-uid", "Error saving claim: the object has been modified; please apply your changes")}, vm.State{Status: "creating", Reason: "StorageProvisioning"}},
		"the claim lost its volume":          {[]change{fresh, phase("Scheduling"), func(o *vm.Observed) { o.DataClaim.Status.Phase = corev1.ClaimLost }}, vm.State{Status: "failed", Reason: "ClaimPending", Hopeless: true, Grace: 30 * time.Second}},
		"claim bound after an error":         {[]change{fresh, phase("Scheduling"), warning("PersistentVolumeClaim", "pg-orders-data", "data-uid", "no space")}, vm.State{Status: "creating", Reason: "Scheduling"}},
		"no node fits":                       {[]change{fresh, phase("Scheduling"), printable("ErrorUnschedulable"), unscheduled("0/2 nodes are available: 2 Insufficient memory.")}, vm.State{Status: "failed", Reason: "Unschedulable", Hopeless: true, Grace: 30 * time.Second}},
		"halted for quota":                   {[]change{fresh, noInstance, strategy("Halted"), printable("Stopped"), quota}, vm.State{Status: "failed", Reason: "QuotaExceeded", Hopeless: true}},
		"pod refused for quota":              {[]change{fresh, phase("Pending"), condition(kubevirtv1.VirtualMachineInstanceSynchronized, corev1.ConditionFalse, "FailedCreate", "pods \"virt-launcher\" is forbidden: exceeded quota: compute")}, vm.State{Status: "failed", Reason: "QuotaExceeded", Hopeless: true, Grace: 30 * time.Second}},
		"pod is starting":                    {[]change{fresh, phase("Scheduled"), printable("Starting")}, vm.State{Status: "creating", Reason: "Booting"}},
		"failed to start once":               {[]change{fresh, noInstance, printable("CrashLoopBackOff"), crashes(1)}, vm.State{Status: "creating", Reason: "CrashLoop"}},
		"crash loop":                         {[]change{fresh, noInstance, printable("CrashLoopBackOff"), crashes(3)}, vm.State{Status: "failed", Reason: "CrashLoop", Hopeless: true}},
		"crash loop, between two tries":      {[]change{fresh, phase("Scheduling"), printable("Starting"), crashes(4)}, vm.State{Status: "failed", Reason: "CrashLoop", Hopeless: true}},
		"crashed while running":              {[]change{fresh, machineFailed("a")}, vm.State{Status: "creating", Reason: "CrashLoop"}},
		"up again after a crash":             {[]change{fresh, machineFailed("a"), machineUp("b")}, vm.State{Status: "available", Available: true, Address: address}},
		"crashes while running":              {[]change{fresh, machineFailed("a"), machineFailed("b"), machineFailed("b"), machineFailed("c")}, vm.State{Status: "failed", Reason: "CrashLoop", Hopeless: true}},
		"one machine, seen often":            {[]change{fresh, machineFailed("a"), machineFailed("a"), machineFailed("a")}, vm.State{Status: "creating", Reason: "CrashLoop"}},
		"before the next crash":              {[]change{fresh, machineFailed("a"), machineFailed("b"), machineFailed("c"), machineUp("d"), notReady}, vm.State{Status: "failed", Reason: "CrashLoop", Address: address, Hopeless: true}},
		"ready at the fourth try":            {[]change{fresh, machineFailed("a"), machineFailed("b"), machineFailed("c"), machineUp("d")}, vm.State{Status: "available", Available: true, Address: address}},
		"running, no agent yet":              {[]change{fresh, notReady, noAgent, addresses()}, vm.State{Status: "creating", Reason: "Booting"}},
		"agent, but no address":              {[]change{fresh, notReady, addresses()}, vm.State{Status: "creating", Reason: "NoAddress"}},
		"ready, but no address":              {[]change{fresh, addresses("fe80::1")}, vm.State{Status: "creating", Reason: "NoAddress"}},
		"address, database not ready":        {[]change{fresh, notReady}, vm.State{Status: "creating", Reason: "ConfiguringDatabase", Address: address}},
		"the guest failed":                   {[]change{fresh, notReady, console(guestFailure)}, vm.State{Status: "failed", Reason: "GuestFailed", Address: address, Hopeless: true}},
		"the guest failed without an agent":  {[]change{fresh, notReady, noAgent, addresses(), console(guestFailure)}, vm.State{Status: "failed", Reason: "GuestFailed", Hopeless: true}},
		"the guest's old failure":            {[]change{fresh, console(guestFailure)}, vm.State{Status: "available", Available: true, Address: address}},

		// Later.
		"crashed":                        {[]change{machineFailed("a")}, vm.State{Status: "degraded", Reason: "CrashLoop"}},
		"Ready was lost":                 {[]change{notReady}, vm.State{Status: "degraded", Reason: "NotReady", Address: address}},
		"known from the Secret alone":    {[]change{fresh, notReady, func(o *vm.Observed) { o.EverAvailable = true }}, vm.State{Status: "degraded", Reason: "NotReady", Address: address}},
		"the address was lost":           {[]change{addresses("169.254.1.1")}, vm.State{Status: "degraded", Reason: "NoAddress"}},
		"paused":                         {[]change{notReady, condition(kubevirtv1.VirtualMachineInstancePaused, corev1.ConditionTrue, "", "")}, vm.State{Status: "degraded", Reason: "NotReady", Address: address}},
		"the guest failed at a boot":     {[]change{notReady, console(guestFailure)}, vm.State{Status: "degraded", Reason: "GuestFailed", Address: address, Hopeless: true}},
		"no node fits at a start":        {[]change{phase("Scheduling"), unscheduled("0/2 nodes are available: 2 Insufficient cpu.")}, vm.State{Status: "degraded", Reason: "Unschedulable", Hopeless: true, Grace: 30 * time.Second}},
		"starting":                       {[]change{phase("Scheduling"), printable("Starting")}, vm.State{Status: "starting", Reason: "Scheduling"}},
		"started, machine about to run":  {[]change{phase("Scheduled"), printable("Starting")}, vm.State{Status: "starting", Reason: "Booting"}},
		"restarted by somebody":          {[]change{printable("Stopping"), func(o *vm.Observed) { deleting(o.VMI) }}, vm.State{Status: "starting", Reason: "Scheduling"}},
		"stopping":                       {[]change{strategy("Halted"), printable("Stopping"), func(o *vm.Observed) { deleting(o.VMI) }}, vm.State{Status: "stopping"}},
		"stopping has not begun":         {[]change{strategy("Halted")}, vm.State{Status: "stopping"}},
		"stopped":                        {[]change{strategy("Halted"), printable("Stopped"), noInstance}, vm.State{Status: "stopped"}},
		"stopped, ended instance left":   {[]change{strategy("Halted"), printable("Stopped"), phase("Succeeded")}, vm.State{Status: "stopped"}},
		"stopped by the field running":   {[]change{printable("Stopped"), noInstance, func(o *vm.Observed) { o.VM.Spec.RunStrategy, o.VM.Spec.Running = nil, new(false) }}, vm.State{Status: "stopped"}},
		"powered off under Rerun":        {[]change{strategy("RerunOnFailure"), printable("Stopped"), phase("Succeeded")}, vm.State{Status: "stopped"}},
		"powered off under Always":       {[]change{printable("Stopped"), phase("Succeeded")}, vm.State{Status: "starting", Reason: "Scheduling"}},
		"old quota note on what runs":    {[]change{quota}, vm.State{Status: "available", Available: true, Address: address}},
		"started again after quota":      {[]change{noInstance, quota, printable("Starting")}, vm.State{Status: "starting", Reason: "Scheduling"}},
		"stopped, metrics' address old":  {[]change{strategy("Halted"), printable("Stopped"), noInstance, staleMetrics}, vm.State{Status: "stopped"}},
		"stopped, Secret removed":        {[]change{strategy("Halted"), printable("Stopped"), noInstance, func(o *vm.Observed) { o.CredentialsMissing = true }}, vm.State{Status: "stopped", Reason: "CredentialsMissing"}},
		"being deleted":                  {[]change{func(o *vm.Observed) { deleting(o.VM) }}, vm.State{Status: "deleting"}},
		"another volume under the name":  {[]change{func(o *vm.Observed) { o.DataClaim.UID = "blank-uid" }}, vm.State{Status: "failed", Reason: "DataVolumeReplaced", Address: address, Hopeless: true}},
		"the volume is gone":             {[]change{func(o *vm.Observed) { o.DataClaim, o.DataClaimMissing = nil, true }}, vm.State{Status: "failed", Reason: "DataVolumeReplaced", Address: address, Hopeless: true}},
		"the volume was not asked for":   {[]change{func(o *vm.Observed) { o.DataClaim = nil }}, vm.State{Status: "available", Available: true, Address: address}},
		"no virtual machine":             {[]change{noInstance, func(o *vm.Observed) { o.VM = nil }}, vm.State{Status: "failed", Reason: "VMMissing", Hopeless: true}},
		"bootstrap left, but not ready":  {[]change{notReady, func(o *vm.Observed) { o.BootstrapMaterial = true }}, vm.State{Status: "degraded", Reason: "NotReady", Address: address}},
		"the operator's, while stopped":  {[]change{func(o *vm.Observed) { o.OperatorManaged = true }, strategy("Halted"), noInstance}, vm.State{Status: "stopped", Reason: "OperatorManaged"}},
		"half-made, instance never came": {[]change{neverAvailable, noInstance, func(o *vm.Observed) { o.VM.Status.PrintableStatus = "Starting" }}, vm.State{Status: "creating", Reason: "Scheduling"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := vm.Assess(observed(t, test.changes...))
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(vm.State{}, "Detail")); diff != "" {
				t.Errorf("Assess (-want +got):\n%s", diff)
			}
			if got.Detail == "" {
				t.Error("Detail is empty, want a sentence")
			}
		})
	}
}

func restartRequired(o *vm.Observed) {
	o.VM.Status.Conditions = append(o.VM.Status.Conditions, kubevirtv1.VirtualMachineCondition{
		Type: kubevirtv1.VirtualMachineRestartRequired, Status: corev1.ConditionTrue, Message: "a non-live-updatable field was changed",
	})
}

func templateHash(hash string) func(*vm.Observed) {
	return func(o *vm.Observed) { o.VM.Spec.Template.ObjectMeta.Annotations[vm.AnnotationConfigHash] = hash }
}

func quota(o *vm.Observed) {
	o.VM.Annotations[vm.AnnotationQuota] = "limits.memory of namespace tenant-acme"
}

// What a person reads when a wait ends in vain.
func TestDetailTellsWhatWasSeen(t *testing.T) {
	for name, test := range map[string]struct {
		changes []func(*vm.Observed)
		want    []string
	}{
		"nothing there":       {[]func(*vm.Observed){func(o *vm.Observed) { o.VM = nil }}, []string{"The virtual machine does not exist."}},
		"no node":             {[]func(*vm.Observed){fresh, phase("Scheduling"), printable("ErrorUnschedulable"), unscheduled("0/2 nodes are available.")}, []string{"Virtual machine pg-orders: status ErrorUnschedulable.", "phase Scheduling.", "PodScheduled is False (Unschedulable): 0/2 nodes are available."}},
		"claim":               {[]func(*vm.Observed){fresh, phase("Scheduling"), claimPending, warning("PersistentVolumeClaim", "pg-orders-data", "", "no space\n")}, []string{"Claim pg-orders-data is Pending.", "Event on PersistentVolumeClaim pg-orders-data (ProvisioningFailed): no space."}},
		"quota":               {[]func(*vm.Observed){fresh, noInstance, strategy("Halted"), quota}, []string{"halted by Harvester for lack of quota: limits.memory of namespace tenant-acme.", "No instance of it runs."}},
		"crash":               {[]func(*vm.Observed){fresh, noInstance, crashes(3)}, []string{"failed to start 3 times in a row"}},
		"address":             {[]func(*vm.Observed){fresh, noAgent, addresses("fe80::1")}, []string{"No usable address on interface data-net; there is only fe80::1 on data-net; the guest agent is not connected."}},
		"guest":               {[]func(*vm.Observed){fresh, notReady, console(guestFailure)}, []string{"Ready is False (ContainersNotReady)", "The guest says: step install is failed: PostgreSQL 16 is not to be had."}},
		"events not read":     {[]func(*vm.Observed){fresh, notReady, func(o *vm.Observed) { o.EventsUnread = "events is forbidden" }}, []string{"What events tell is not known: events is forbidden."}},
		"console not read":    {[]func(*vm.Observed){fresh, notReady, func(o *vm.Observed) { o.ConsoleUnread = "pods/log is forbidden" }}, []string{"The guest's console was not read: pods/log is forbidden."}},
		"replaced volume":     {[]func(*vm.Observed){func(o *vm.Observed) { o.DataClaim.UID = "blank-uid" }}, []string{"uid data-uid, which is gone; claim pg-orders-data with uid blank-uid is another one."}},
		"refused by webhooks": {[]func(*vm.Observed){fresh, noInstance, refused}, []string{"failure FailedCreate: admission webhook denied the request."}},
		"paused":              {[]func(*vm.Observed){notReady, condition(kubevirtv1.VirtualMachineInstancePaused, corev1.ConditionTrue, "", "")}, []string{"It is paused."}},
	} {
		t.Run(name, func(t *testing.T) {
			got := vm.Assess(observed(t, test.changes...)).Detail
			for _, want := range test.want {
				if !strings.Contains(got, want) {
					t.Errorf("Detail lacks %q:\n%s", want, got)
				}
			}
		})
	}
}

func refused(o *vm.Observed) {
	o.VM.Status.Conditions = append(o.VM.Status.Conditions, kubevirtv1.VirtualMachineCondition{
		Type: kubevirtv1.VirtualMachineFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "admission webhook denied the request",
	})
}

func TestDetailQuotesTheNewestWarnings(t *testing.T) {
	o := observed(t, notReady)
	for n, message := range []string{"oldest", "old", "new", "newest"} {
		o.Events = append(o.Events, corev1.Event{
			Type: corev1.EventTypeWarning, Message: message,
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "virt-launcher-pg-orders-x"},
			EventTime:      metav1.MicroTime{Time: time.Unix(int64(n), 0)},
		})
	}
	o.Events = append(o.Events, corev1.Event{
		Type: corev1.EventTypeWarning, Message: "noise: the object has been modified", EventTime: metav1.MicroTime{Time: time.Unix(8, 0)},
	})
	o.Events = append(o.Events, corev1.Event{Type: corev1.EventTypeNormal, Message: "routine", LastTimestamp: metav1.Time{Time: time.Unix(9, 0)}})
	got := vm.Assess(o).Detail
	for message, want := range map[string]bool{": newest.": true, ": new.": true, ": old.": true, "oldest": false, "routine": false, "noise": false} {
		if strings.Contains(got, message) != want {
			t.Errorf("Detail has %q: %t, want %t:\n%s", message, !want, want, got)
		}
	}
}
