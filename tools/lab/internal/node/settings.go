package node

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kubevirtv1 "kubevirt.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/knobs"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/state"
)

// knobData is the data of the knobs' ConfigMap. It comes from the cache, where it
// is new before any controller hears that a knob was turned.
func (c *cluster) knobData(ctx context.Context) map[string]string {
	cm := new(corev1.ConfigMap)
	if err := c.Get(ctx, client.ObjectKey{Namespace: knobs.ConfigMapNamespace, Name: knobs.ConfigMapName}, cm); err != nil {
		return nil
	}
	return cm.Data
}

// knobsOf returns an object's knobs.
func (c *cluster) knobsOf(ctx context.Context, o client.Object) knobs.Values {
	return knobs.For(c.knobData(ctx), o.GetNamespace(), o.GetName(), o.GetAnnotations())
}

// ofMachine returns the knobs of a VirtualMachineInstance: those of the
// VirtualMachine of its name, whose annotations it does not inherit.
func (c *cluster) ofMachine(ctx context.Context, namespace, name string) knobs.Values {
	vm := new(kubevirtv1.VirtualMachine)
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, vm); err != nil {
		return knobs.For(c.knobData(ctx), namespace, name, nil)
	}
	return c.knobsOf(ctx, vm)
}

// knobWatch follows the ConfigMap and turns the knobs that belong to no object.
type knobWatch struct {
	*cluster
	dir state.Dir
}

func (k *knobWatch) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("knobs").
		For(&corev1.ConfigMap{}, builder.WithPredicates(predicate.NewPredicateFuncs(isKnobs))).Complete(k)
}

func (k *knobWatch) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cm := new(corev1.ConfigMap)
	if err := k.Get(ctx, req.NamespacedName, cm); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	for key, value := range cm.Data {
		if err := knobs.CheckKey(key, value); err != nil {
			k.log.Warn("a knob has no effect", "error", err)
		}
	}
	lab := knobs.For(cm.Data, "", "", nil)
	if err := setFile(k.dir.Path("run", "packages.down"), lab[knobs.PackageProxy] == "down"); err != nil {
		return ctrl.Result{}, fmt.Errorf("tell the package proxy: %w", err)
	}
	return ctrl.Result{}, k.breakWebhooks(ctx, lab[knobs.Webhook])
}

// setFile makes a file's existence say something to another process.
func setFile(path string, exists bool) error {
	if exists {
		return os.WriteFile(path, nil, 0o644)
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

func isKnobs(o client.Object) bool {
	return o.GetNamespace() == knobs.ConfigMapNamespace && o.GetName() == knobs.ConfigMapName
}

// onKnobs makes a controller look at every object of list again when a knob was
// turned.
func onKnobs(c *cluster, list client.ObjectList, each func(client.ObjectList) []client.Object) (client.Object, handler.EventHandler, builder.WatchesOption) {
	return &corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		l := list.DeepCopyObject().(client.ObjectList)
		if err := c.List(ctx, l); err != nil {
			if !apierrors.IsNotFound(err) {
				c.log.Warn("cannot look at the objects of a knob", "error", err)
			}
			return nil
		}
		var out []reconcile.Request
		for _, o := range each(l) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
		}
		return out
	}), builder.WithPredicates(predicate.NewPredicateFuncs(isKnobs))
}
