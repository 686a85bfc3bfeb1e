package acceptance

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func services() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "services"}
}

func endpoints() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "endpoints"}
}

// outlet is one of the objects that an instance's metrics are read through; nil
// if there is none.
func (l *lab) outlet(kind schema.GroupVersionResource, name string) map[string]any {
	l.t.Helper()
	object, err := l.dynamic.Resource(kind).Namespace(namespace).Get(context.Background(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(l.t, err)
	return object.Object
}

// outlets is what of the three objects Prometheus goes by.
func (l *lab) outlets(name string) map[string]any {
	l.t.Helper()
	found := map[string]any{}
	service, ends, monitor := l.outlet(services(), "pg-"+name+"-metrics"), l.outlet(endpoints(), "pg-"+name+"-metrics"), l.outlet(monitors(), "pg-"+name+"-monitor")
	for key, place := range map[string]struct {
		object map[string]any
		path   string
	}{
		"service's labels": {service, "metadata.labels"}, "cluster's address": {service, "spec.clusterIP"}, "selector": {service, "spec.selector"},
		"service's port": {service, "spec.ports"}, "endpoints' labels": {ends, "metadata.labels"}, "subsets": {ends, "subsets"},
		"monitor's labels": {monitor, "metadata.labels"}, "monitor": {monitor, "spec"},
		"service's instance": {service, "metadata.annotations"}, "endpoints' instance": {ends, "metadata.annotations"}, "monitor's instance": {monitor, "metadata.annotations"},
	} {
		value, there, err := unstructured.NestedFieldCopy(place.object, strings.Split(place.path, ".")...)
		must(l.t, err)
		if annotations, ok := value.(map[string]any); ok && strings.HasSuffix(key, "instance") {
			value = annotations["dbaas.opencloud.wso2.com/instance-id"] // others note there too
		}
		if there {
			found[key] = value
		}
	}
	return found
}

// published wants Prometheus to find the metrics at the address in the state.
func (l *lab) published(name, interval string) resource.TestCheckFunc {
	return func(s *terraform.State) error {
		state := s.RootModule().Resources[it].Primary.Attributes
		labels := func(more ...string) map[string]any {
			all := map[string]any{"dbaas.opencloud.wso2.com/instance": name, "app.kubernetes.io/managed-by": "terraform-provider-dbaas"}
			for i := 0; i < len(more); i += 2 {
				all[more[i]] = more[i+1]
			}
			return all
		}
		port := map[string]any{"name": "metrics", "port": int64(9187), "protocol": "TCP"}
		want := map[string]any{
			"service's labels": labels("dbaas.opencloud.wso2.com/metrics", "true"), "cluster's address": "None",
			"service's port":    []any{map[string]any{"name": "metrics", "port": int64(9187), "protocol": "TCP", "targetPort": int64(9187)}},
			"endpoints' labels": labels(), "subsets": []any{map[string]any{"addresses": []any{map[string]any{"ip": state["address"]}}, "ports": []any{port}}},
			"monitor's labels": labels("release", "prometheus"),
			"monitor": map[string]any{
				"selector": map[string]any{"matchLabels": map[string]any{"dbaas.opencloud.wso2.com/instance": name, "dbaas.opencloud.wso2.com/metrics": "true"}},
				"endpoints": []any{map[string]any{
					"port": "metrics", "path": "/metrics", "interval": interval,
					"relabelings": []any{map[string]any{"action": "replace", "targetLabel": "dbaas_instance", "replacement": name}},
				}},
			},
			"service's instance": state["instance_id"], "endpoints' instance": state["instance_id"], "monitor's instance": state["instance_id"],
		}
		if diff := cmp.Diff(want, l.outlets(name)); diff != "" {
			return fmt.Errorf("what Prometheus finds:\n%s", diff)
		}
		return nil
	}
}

// wrote wants exactly these requests since the last reset.
func (l *lab) wrote(want ...string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		var written []string
		for _, r := range l.requests("", "POST", "PUT", "PATCH", "DELETE") {
			path, _, _ := strings.Cut(r.Path, "?")
			written = append(written, r.Method+" "+path[strings.LastIndex(path, "/")+1:])
		}
		slices.Sort(written)
		if diff := cmp.Diff(want, written); diff != "" {
			return fmt.Errorf("written:\n%s", diff)
		}
		return nil
	}
}

// pointElsewhere is somebody who changes an instance's Endpoints.
func (l *lab) pointElsewhere(name string) {
	l.t.Helper()
	patch := `{"subsets":[{"addresses":[{"ip":"203.0.113.9"}],"ports":[{"name":"metrics","port":9187}]}]}`
	_, err := l.dynamic.Resource(endpoints()).Namespace(namespace).Patch(context.Background(), "pg-"+name+"-metrics", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
	must(l.t, err)
}

// arrived waits until the cluster says that an instance has an address.
func (l *lab) arrived(name, address string) {
	l.t.Helper()
	kind := machines()
	kind.Resource = "virtualmachineinstances"
	ctx, stop := context.WithTimeout(context.Background(), deleteWithin)
	defer stop()
	seen, err := l.dynamic.Resource(kind).Namespace(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=pg-" + name})
	must(l.t, err)
	defer seen.Stop()
	for event := range seen.ResultChan() {
		machine, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		cards, _, err := unstructured.NestedSlice(machine.Object, "status", "interfaces")
		must(l.t, err)
		if slices.ContainsFunc(cards, func(card any) bool { return card.(map[string]any)["ipAddress"] == address }) {
			return
		}
	}
	l.t.Fatalf("instance %s does not get the address %s", name, address)
}

func TestMonitoringFromOnToGone(t *testing.T) {
	l := useLab(t)
	var boots func() int
	on := args{"monitoring": `{ grafana_base_url = "https://grafana.example.com/g/" }`}
	minutely := args{"monitoring": `{ scrape_interval = "1m" }`}
	const address = namespace + ".pg-watched.addresses"
	t.Cleanup(func() { l.knob(address, "") })
	update := resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(it, plancheck.ResourceActionUpdate)}}
	begin := func(change func()) func() {
		return func() {
			change()
			l.reset()
			boots = l.boots("watched")
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("watched"),
		Steps: []resource.TestStep{
			{Config: l.config("watched", on), Check: resource.ComposeAggregateTestCheckFunc(
				l.published("watched", "15s"),
				attr("status", "available"), resource.TestCheckNoResourceAttr(it, "status_reason"),
				attr("monitoring.scrape_interval", "15s"), attr("monitoring.allowed_cidrs.#", "2"),
				attr("resources.metrics_service_name", "pg-watched-metrics"), attr("resources.service_monitor_name", "pg-watched-monitor"),
				attr("grafana_url", "https://grafana.example.com/g/d/dbaas-postgresql?var-namespace="+namespace+"&var-instance=watched"),
			)},
			{
				PreConfig: l.reset,
				Config:    l.config("watched", on) + "data \"dbaas_instance\" \"it\" {\n  namespace = dbaas_instance.it.namespace\n  name      = dbaas_instance.it.name\n}\n",
				Check: resource.ComposeAggregateTestCheckFunc(
					func(*terraform.State) error { return l.wroteNothing() },
					resource.TestCheckResourceAttrPair("data."+it, "monitoring.scrape_interval", it, "monitoring.scrape_interval"),
					resource.TestCheckResourceAttrPair("data."+it, "monitoring.grafana_base_url", it, "monitoring.grafana_base_url"),
					resource.TestCheckResourceAttrPair("data."+it, "monitoring.allowed_cidrs.#", it, "monitoring.allowed_cidrs.#"),
				),
			},
			{Config: l.config("watched", on), PlanOnly: true},
			{ResourceName: it, ImportState: true, ImportStateVerify: true},
			{ResourceName: it, ImportState: true, ImportStateKind: resource.ImportBlockWithID},
			// Another interval, and no Grafana any more.
			{PreConfig: begin(func() {}), Config: l.config("watched", minutely), ConfigPlanChecks: update, Check: resource.ComposeAggregateTestCheckFunc(
				restarted(&boots, 0), l.published("watched", "1m"), l.wrote("PATCH pg-watched-cloudinit", "PATCH pg-watched-monitor"),
				resource.TestCheckNoResourceAttr(it, "grafana_url"),
			)},
			// Somebody points Prometheus elsewhere.
			{
				PreConfig: begin(func() { l.pointElsewhere("watched") }), Config: l.config("watched", minutely), ConfigPlanChecks: update,
				Check: resource.ComposeAggregateTestCheckFunc(
					restarted(&boots, 0), l.published("watched", "1m"), l.wrote("PATCH pg-watched-metrics"), resource.TestCheckNoResourceAttr(it, "status_reason"),
				),
			},
			// The instance moves.
			{
				PreConfig: begin(func() {
					l.knob(address, `[{"after":"0s","addresses":{"data-net":["198.18.250.250"]}}]`)
					l.arrived("watched", "198.18.250.250")
				}),
				RefreshState: true, ExpectNonEmptyPlan: true,
				Check: resource.ComposeAggregateTestCheckFunc(
					attr("address", "198.18.250.250"), attr("status", "available"), attr("status_reason", "MetricsAddressStale"),
					func(*terraform.State) error { return l.wroteNothing() },
				),
			},
			{Config: l.config("watched", minutely), ConfigPlanChecks: update, Check: resource.ComposeAggregateTestCheckFunc(
				restarted(&boots, 0), attr("address", "198.18.250.250"), l.published("watched", "1m"), l.wrote("PATCH pg-watched-credentials", "PATCH pg-watched-metrics"),
			)},
			// Somebody removes all three.
			{
				PreConfig: begin(func() {
					must(t, l.dynamic.Resource(services()).Namespace(namespace).Delete(context.Background(), "pg-watched-metrics", metav1.DeleteOptions{}))
					must(t, l.dynamic.Resource(monitors()).Namespace(namespace).Delete(context.Background(), "pg-watched-monitor", metav1.DeleteOptions{}))
				}),
				Config: l.config("watched", minutely), ConfigPlanChecks: update,
				Check: resource.ComposeAggregateTestCheckFunc(restarted(&boots, 0), l.published("watched", "1m"), attr("resources.service_monitor_name", "pg-watched-monitor")),
			},
			{PreConfig: begin(func() { l.knob(address, "") }), Config: l.config("watched", nil), ConfigPlanChecks: update, Check: resource.ComposeAggregateTestCheckFunc(
				restarted(&boots, 1), resource.TestCheckNoResourceAttr(it, "monitoring.scrape_interval"),
				resource.TestCheckNoResourceAttr(it, "resources.metrics_service_name"), resource.TestCheckNoResourceAttr(it, "resources.service_monitor_name"),
				func(*terraform.State) error {
					if left := l.outlets("watched"); len(left) > 0 {
						return fmt.Errorf("left: %v", left)
					}
					return nil
				},
			)},
			{PreConfig: begin(func() {}), Config: l.config("watched", on), Check: resource.ComposeAggregateTestCheckFunc(restarted(&boots, 1), l.published("watched", "15s"))},
			{PreConfig: begin(func() {}), Config: l.config("watched", args{"monitoring": `{ allowed_cidrs = ["198.18.0.0/15"] }`}), Check: resource.ComposeAggregateTestCheckFunc(
				restarted(&boots, 1), l.published("watched", "15s"), attr("monitoring.allowed_cidrs.#", "1"),
			)},
		},
	})
}

func TestMonitoringWhileTheInstanceIsStopped(t *testing.T) {
	l := useLab(t)
	still := args{"running": "false", "monitoring": "{}"}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("asleep"),
		Steps: []resource.TestStep{
			{Config: l.config("asleep", args{"running": "false"})},
			{Config: l.config("asleep", still), Check: resource.ComposeAggregateTestCheckFunc(
				attr("status", "stopped"), resource.TestCheckNoResourceAttr(it, "resources.metrics_service_name"),
			)},
			{Config: l.config("asleep", args{"monitoring": "{}"}), Check: l.published("asleep", "15s")},
			// It stays where it was, and nothing is left to do.
			{Config: l.config("asleep", still), Check: resource.ComposeAggregateTestCheckFunc(
				attr("status", "stopped"), resource.TestCheckNoResourceAttr(it, "status_reason"), l.published("asleep", "15s"),
			)},
		},
	})
}

func TestMonitoringRefusesTheServiceOfAStranger(t *testing.T) {
	l := useLab(t)
	own := l.kube.CoreV1().Services(namespace)
	const name = "pg-unseen-metrics"
	_, err := own.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"example.com/owner": "somebody"}},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "theirs"}, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}, metav1.CreateOptions{})
	must(t, err)
	remove := func() {
		if err := own.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
	t.Cleanup(remove)
	before := l.outlet(services(), name)
	refused := regexp.MustCompile(name + `\s+stands\s+already`)
	untouched := func(*terraform.State) error {
		if diff := cmp.Diff(before, l.outlet(services(), name)); diff != "" {
			return fmt.Errorf("the stranger's Service: %s", diff)
		}
		return nil
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy: func(s *terraform.State) error {
			if err := untouched(s); err != nil {
				return err
			}
			remove()
			return nil
		},
		Steps: []resource.TestStep{
			{PreConfig: l.reset, Config: l.config("unseen", args{"monitoring": "{}"}), ExpectError: refused},
			{
				PreConfig: func() {
					must(t, l.wroteNothing())
					must(t, untouched(nil))
				},
				Config: l.config("unseen", nil),
			},
			{PreConfig: l.reset, Config: l.config("unseen", args{"monitoring": "{}"}), ExpectError: refused},
			{
				PreConfig: func() { must(t, l.wroteNothing()) },
				Config:    l.config("unseen", nil), PlanOnly: true,
			},
		},
	})
	if left := slices.DeleteFunc(l.remains("unseen"), func(o string) bool { return strings.HasPrefix(o, "endpoint") }); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
