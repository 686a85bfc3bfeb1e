package node

import (
	"context"
	"errors"
	"slices"

	harvesterv1 "github.com/harvester/harvester/pkg/apis/harvesterhci.io/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/knobs"
)

// misfortuneLabel names the machine for whose sake an object is there.
const misfortuneLabel = "lab.dbaas/misfortune"

// misfortune makes the objects of the knobs that need one: a backup in progress, a
// quota without memory, a condition that is not true.
type misfortune struct{ *cluster }

func (m *misfortune) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("misfortune").
		For(&kubevirtv1.VirtualMachine{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(m.concerned), builder.WithPredicates(predicate.NewPredicateFuncs(isKnobs))).
		Complete(m)
}

// concerned are the machines that a turned knob may concern: those that exist, those
// that are to find a quota when they come, and those that left one behind.
func (m *misfortune) concerned(ctx context.Context, _ client.Object) []reconcile.Request {
	var out []reconcile.Request
	add := func(namespace, name string) {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}})
	}
	for _, o := range knobs.Objects(m.knobData(ctx), knobs.NoQuota) {
		add(o[0], o[1])
	}
	quotas, vms := new(corev1.ResourceQuotaList), new(kubevirtv1.VirtualMachineList)
	if err := errors.Join(m.live.List(ctx, quotas, client.HasLabels{misfortuneLabel}), m.List(ctx, vms)); err != nil {
		m.log.Warn("cannot look at the objects of a knob", "error", err)
	}
	for _, q := range quotas.Items {
		add(q.Namespace, q.Labels[misfortuneLabel])
	}
	for _, vm := range vms.Items {
		add(vm.Namespace, vm.Name)
	}
	return out
}

func (m *misfortune) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	vm := new(kubevirtv1.VirtualMachine)
	if err := m.Get(ctx, req.NamespacedName, vm); err != nil {
		if apierrors.IsNotFound(err) {
			vm.Namespace, vm.Name = req.Namespace, req.Name
			return ctrl.Result{}, m.quota(ctx, vm, m.knobsOf(ctx, vm).On(knobs.NoQuota))
		}
		return ctrl.Result{}, err
	}
	v := m.knobsOf(ctx, vm)
	if err := m.quota(ctx, vm, v.On(knobs.NoQuota)); err != nil {
		return ctrl.Result{}, err
	}
	if err := m.backup(ctx, vm, v.On(knobs.Backup)); err != nil {
		return ctrl.Result{}, err
	}
	if v.On(knobs.RestartRequired) {
		return ctrl.Result{}, m.requireRestart(ctx, vm)
	}
	return ctrl.Result{}, nil
}

// quota sets a ResourceQuota that leaves no memory for the machine's launcher. It
// is the API server that refuses the pod then, virt-controller that reports it,
// and Harvester that halts the machine and annotates it.
func (m *misfortune) quota(ctx context.Context, vm *kubevirtv1.VirtualMachine, wanted bool) error {
	q := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: vm.Namespace, Name: "lab-" + vm.Name, Labels: map[string]string{misfortuneLabel: vm.Name}},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceLimitsMemory: resource.MustParse("1Mi")}},
	}
	return m.ensure(ctx, q, wanted)
}

// ensure creates or deletes an object.
func (m *misfortune) ensure(ctx context.Context, o client.Object, wanted bool) error {
	err := m.live.Get(ctx, client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object))
	switch {
	case wanted && apierrors.IsNotFound(err):
		return m.Create(ctx, o)
	case !wanted && err == nil:
		return client.IgnoreNotFound(m.Delete(ctx, o))
	case apierrors.IsNotFound(err):
		return nil
	}
	return err
}

// backup makes a snapshot of the machine that never gets ready. Harvester's webhook
// wants Longhorn's engines for a new one, but not for one that comes with a status,
// as those do that are recovered from a backup target.
func (m *misfortune) backup(ctx context.Context, vm *kubevirtv1.VirtualMachine, wanted bool) error {
	group := kubevirtv1.SchemeGroupVersion.Group
	b := &harvesterv1.VirtualMachineBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: vm.Namespace, Name: "lab-" + vm.Name},
		Spec: harvesterv1.VirtualMachineBackupSpec{
			Type:   harvesterv1.Snapshot,
			Source: corev1.TypedLocalObjectReference{APIGroup: &group, Kind: "VirtualMachine", Name: vm.Name},
		},
		Status: harvesterv1.VirtualMachineBackupStatus{
			SourceUID: &vm.UID, ReadyToUse: new(false),
			SourceSpec: &harvesterv1.VirtualMachineSourceSpec{Spec: vm.Spec},
			VolumeBackups: []harvesterv1.VolumeBackup{{
				Name: new("lab"), VolumeName: "lab", CSIDriverName: provisioners()[0], LonghornBackupName: new("lab"),
				// Harvester's webhook dereferences the class.
				PersistentVolumeClaim: harvesterv1.PersistentVolumeClaimSourceSpec{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new("lab")}},
			}},
		},
	}
	if err := m.ensure(ctx, b, wanted && vm.DeletionTimestamp == nil); err != nil || !wanted || b.UID == "" {
		return err
	}
	// Harvester would look for this volume's snapshot before it lets the machine go.
	b.Status.VolumeBackups = nil
	return m.Update(ctx, b)
}

// requireRestart says that the machine needs a restart, as virt-controller does for
// a change that it cannot make in a running machine.
func (m *misfortune) requireRestart(ctx context.Context, vm *kubevirtv1.VirtualMachine) error {
	if slices.ContainsFunc(vm.Status.Conditions, func(c kubevirtv1.VirtualMachineCondition) bool {
		return c.Type == kubevirtv1.VirtualMachineRestartRequired && c.Status == corev1.ConditionTrue
	}) {
		return nil
	}
	old := vm.DeepCopy()
	vm.Status.Conditions = append(vm.Status.Conditions, kubevirtv1.VirtualMachineCondition{
		Type: kubevirtv1.VirtualMachineRestartRequired, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
		Message: "a non-live-updatable field was changed in the template spec",
	})
	return client.IgnoreNotFound(m.Status().Patch(ctx, vm, client.MergeFrom(old)))
}
