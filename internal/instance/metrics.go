package instance

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// An outlet is one of the three objects through which Prometheus finds an
// instance's metrics. All are untyped: Harvester's clusters need not know
// ServiceMonitors, and a typed Endpoints warns of its age, although it is what
// Kubernetes mirrors for whoever reads slices.
type outlet struct {
	kind, name string
	resource   schema.GroupVersionResource
	build      func(vm.Metrics) *unstructured.Unstructured
	// addressed says that it is nothing without an address.
	addressed bool

	// stands is nil when it does not exist; it may be somebody else's.
	stands *unstructured.Unstructured
	// unserved says that the cluster does not know the kind.
	unserved bool
}

// outletsNamed are the outlets in the order in which they are made: Kubernetes
// removes Endpoints that have no Service.
func outletsNamed(names vm.Names) []outlet {
	return []outlet{
		{kind: "service", name: names.MetricsService, resource: schema.GroupVersionResource{Version: "v1", Resource: "services"}, build: vm.Metrics.Service},
		{kind: "endpoints", name: names.MetricsService, resource: schema.GroupVersionResource{Version: "v1", Resource: "endpoints"}, build: vm.Metrics.Endpoints, addressed: true},
		{kind: "servicemonitor", name: names.ServiceMonitor, resource: monitorResource(), build: vm.Metrics.ServiceMonitor},
	}
}

func monitorResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "servicemonitors"}
}

// outlets reads all three at once.
func (s *Store) outlets(ctx context.Context, key Key) ([]outlet, error) {
	all := outletsNamed(vm.NamesOf(key.Name))
	group, gctx := errgroup.WithContext(ctx)
	for i := range all {
		o := &all[i]
		group.Go(func() (err error) {
			q := query{o.kind, key.Namespace, o.name}
			o.stands, err = find(gctx, s, q, unstructuredDeleter{s.outletClient(*o, key)}.Get)
			if apierrors.IsNotFound(err) && o.resource == monitorResource() {
				o.unserved, err = true, nil
			}
			return err
		})
	}
	return all, group.Wait()
}

func (s *Store) outletClient(o outlet, key Key) dynamic.ResourceInterface {
	return s.client.Dynamic.Resource(o.resource).Namespace(key.Namespace)
}

// belongs says whether what stands is the instance's. A caller that does not
// know the instance's id goes by the labels.
func (o outlet) belongs(key Key) bool {
	return o.stands != nil && vm.Ours(o.stands, key.Name) &&
		(key.InstanceID == "" || o.stands.GetAnnotations()[vm.AnnotationInstanceID] == key.InstanceID)
}

// admitOutlets looks, before anything is written, whether the three can be the
// instance's.
func (s *Store) admitOutlets(ctx context.Context, verb string, key Key) error {
	all, err := s.outlets(ctx, key)
	if err != nil {
		return err
	}
	return refuseStrangers(all, verb, key)
}

func refuseStrangers(all []outlet, verb string, key Key) error {
	for _, o := range all {
		if o.stands == nil || o.belongs(key) {
			continue
		}
		return &FieldError{
			Field: FieldMonitoring,
			Err:   fmt.Errorf("%s instance %s: %s %s stands already and does not belong to it", verb, key, o.kind, o.name),
			Advice: fmt.Sprintf("It was left as it is. Leave monitoring out; or, if nobody needs what stands, remove it and apply again: kubectl -n %s delete %s/%s",
				key.Namespace, o.resource.GroupResource(), o.name),
		}
	}
	return nil
}

// publish lets Prometheus read the metrics at the instance's address: what is
// missing is made, what differs put right. While there is no address nothing is
// made, and what stands keeps the last one.
func (s *Store) publish(ctx context.Context, key Key, m vm.Metrics) (warnings []string, err error) {
	all, err := s.outlets(ctx, key)
	if err != nil {
		return nil, err
	}
	if err := refuseStrangers(all, "monitor", key); err != nil {
		return nil, err
	}
	for _, o := range all {
		switch {
		case m.Address == "" && (o.addressed || o.stands == nil):
		case o.unserved:
			warnings = append(warnings, unservedWarning(key))
		case o.stands == nil:
			if err := s.makeOutlet(ctx, key, o, m); err != nil {
				return warnings, err
			}
		case !holds(o.stands.Object, o.build(m).Object):
			if err := s.mendOutlet(ctx, key, o, m); err != nil {
				return warnings, err
			}
		}
	}
	return warnings, nil
}

// unpublishedWarning is for a create, which is not undone by that.
func unpublishedWarning(err error) string {
	return fmt.Sprintf("the instance is available, but its metrics cannot be found by Prometheus yet; the next apply goes on with that: %v", err)
}

func unservedWarning(key Key) string {
	names := vm.NamesOf(key.Name)
	return fmt.Sprintf("the cluster does not know ServiceMonitors (monitoring.coreos.com/v1), so %s was not made and no Prometheus finds the metrics of instance %s by itself; "+
		"its Service and Endpoints %s stand. Enable Harvester's add-on rancher-monitoring; the next apply then makes it",
		names.ServiceMonitor, key, names.MetricsService)
}

func (s *Store) makeOutlet(ctx context.Context, key Key, o outlet, m vm.Metrics) error {
	s.report(ctx, "creating "+o.kind+" "+o.name)
	_, err := retry(ctx, s, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return s.outletClient(o, key).Create(ctx, o.build(m), metav1.CreateOptions{FieldManager: fieldManager})
	})
	if apierrors.IsAlreadyExists(err) {
		// A lost answer, or somebody at this moment: what stands decides.
		again, lookErr := s.outletClient(o, key).Get(ctx, o.name, metav1.GetOptions{})
		o.stands = again
		if lookErr == nil && o.belongs(key) && holds(again.Object, o.build(m).Object) {
			return nil
		}
	}
	return wrap(err, "create %s %s/%s", o.kind, key.Namespace, o.name)
}

func (s *Store) mendOutlet(ctx context.Context, key Key, o outlet, m vm.Metrics) error {
	s.report(ctx, "changing "+o.kind+" "+o.name)
	wanted := o.build(m)
	c := change{"metadata": change{"labels": wanted.GetLabels(), "annotations": wanted.GetAnnotations()}}
	for _, part := range []string{"spec", "subsets"} {
		if content, there := wanted.Object[part]; there {
			c[part] = content
		}
	}
	body, err := c.onObject(o.stands)
	if err != nil {
		return wrap(err, "patch %s %s/%s", o.kind, key.Namespace, o.name)
	}
	_, err = retry(ctx, s, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return s.outletClient(o, key).Patch(ctx, o.name, mergePatch, body, metav1.PatchOptions{FieldManager: fieldManager})
	})
	return wrap(err, "patch %s %s/%s", o.kind, key.Namespace, o.name)
}

// withdraw removes the outlets that are the instance's, the ServiceMonitor
// first. Where the guest's document says that there is no monitoring, nobody
// looks: it says so only once they are gone. Where there is no document, who
// may not see them has none.
func (s *Store) withdraw(ctx context.Context, st *standing) error {
	on, known := st.monitored()
	if known && !on {
		return nil
	}
	all, err := s.outlets(ctx, st.key)
	if apierrors.IsForbidden(err) && !known {
		return nil
	}
	if err != nil {
		return err
	}
	var doomed []relic
	for _, o := range slices.Backward(all) {
		if o.belongs(st.key) {
			s.report(ctx, "deleting "+o.kind+" "+o.name)
			doomed = append(doomed, relicOf(o.kind, o.stands, unstructuredDeleter{s.outletClient(o, st.key)}))
		}
	}
	return s.eraseAll(ctx, doomed)
}

// monitored says whether the guest's document that stands is one with
// monitoring, and whether that can be known.
func (st *standing) monitored() (on, known bool) {
	document, err := st.standingDocument()
	return document.config.Monitoring != nil, err == nil && document.known()
}

// metricsOf is what an instance's outlets are to be made of.
func metricsOf(key Key, wanted Spec, address string) vm.Metrics {
	return vm.Metrics{
		Namespace: key.Namespace, Name: key.Name, InstanceID: key.InstanceID,
		Interval: wanted.Monitoring.ScrapeInterval, Address: address,
	}
}

// identified is the key with the id that the objects carry.
func (st *standing) identified() Key {
	key := st.key
	key.InstanceID, _ = st.identity()
	return key
}

// metricsFault says, as a clause, why Prometheus does not find the metrics of
// an instance that is available; it is empty if nobody asked.
func (st *standing) metricsFault() string {
	address := vm.Address(st.vmi)
	if st.published == nil || address == "" {
		return ""
	}
	spec, err := st.spec()
	if err != nil || spec.Monitoring == nil {
		return "" // whoever reads the instance gets that error
	}
	key := st.identified()
	m := metricsOf(key, spec, address)
	for _, o := range st.published {
		switch {
		case o.unserved:
		case o.stands == nil:
			return o.kind + " " + o.name + " does not exist"
		case !o.belongs(key):
			return o.kind + " " + o.name + " is another's"
		case !holds(o.stands.Object, o.build(m).Object):
			return o.kind + " " + o.name + " is not what this instance needs"
		}
	}
	return ""
}

// publishedNames are the names of the outlets that stand, empty for those that
// do not: the cluster has them only while monitoring is on.
func (st *standing) publishedNames() (service, monitor string) {
	key := st.identified()
	for _, o := range st.published {
		if !o.belongs(key) {
			continue
		}
		switch o.kind {
		case "service":
			service = o.name
		case "servicemonitor":
			monitor = o.name
		}
	}
	return service, monitor
}

// holds says whether an object has all that is wanted, and nothing where nil is
// wanted. What others add beside it does not count, but in a list it does.
func holds(has, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		object, ok := has.(map[string]any)
		for name, value := range wanted {
			ok = ok && holds(object[name], value)
		}
		return ok
	case []any:
		list, ok := has.([]any)
		ok = ok && len(list) == len(wanted)
		for i := 0; ok && i < len(wanted); i++ {
			ok = holds(list[i], wanted[i])
		}
		return ok
	default:
		return reflect.DeepEqual(has, wanted)
	}
}
