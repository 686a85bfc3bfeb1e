package vm

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// MetricsPort is where the guest's exporter answers.
const MetricsPort = 9187

// metricsPort is the port's name, by which the ServiceMonitor chooses it.
const metricsPort = "metrics"

// The label by which a Prometheus of the usual charts may choose ServiceMonitors.
const (
	labelRelease = "release"
	release      = "prometheus"
)

// seriesLabel carries the instance's name on every series: Prometheus's own
// label "instance" is an address, and that may change.
const seriesLabel = "dbaas_instance"

// Metrics is everything that the objects are made of through which Prometheus
// finds an instance's exporter. They are written as merge patches: what is nil
// in them must not be there.
type Metrics struct {
	Namespace, Name string
	// InstanceID is the instance's UUID.
	InstanceID string
	// Interval is how often Prometheus reads, as Prometheus writes durations.
	Interval string
	// Address is the database's.
	Address string
}

// Service returns the headless Service, which chooses no pods: the exporter is
// not in the pods' network.
func (m Metrics) Service() *unstructured.Unstructured {
	service := m.object("v1", "Service", NamesOf(m.Name).MetricsService, map[string]string{LabelMetrics: "true"})
	service.Object["spec"] = map[string]any{
		"clusterIP": "None",
		"selector":  nil,
		"ports":     []any{map[string]any{"name": metricsPort, "port": int64(MetricsPort), "protocol": "TCP"}},
	}
	return service
}

// Endpoints returns where the Service's one endpoint is. Kubernetes mirrors
// them into a slice. They are of no use without an address.
func (m Metrics) Endpoints() *unstructured.Unstructured {
	endpoints := m.object("v1", "Endpoints", NamesOf(m.Name).MetricsService, nil)
	endpoints.Object["subsets"] = []any{map[string]any{
		"addresses": []any{map[string]any{"ip": m.Address}},
		"ports":     []any{map[string]any{"name": metricsPort, "port": int64(MetricsPort), "protocol": "TCP"}},
	}}
	return endpoints
}

// ServiceMonitor returns what tells Prometheus to read the Service's endpoint.
func (m Metrics) ServiceMonitor() *unstructured.Unstructured {
	monitor := m.object("monitoring.coreos.com/v1", "ServiceMonitor", NamesOf(m.Name).ServiceMonitor, map[string]string{labelRelease: release})
	monitor.Object["spec"] = map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{LabelInstance: m.Name, LabelMetrics: "true"}},
		"endpoints": []any{map[string]any{
			"port": metricsPort, "path": "/metrics", "interval": m.Interval,
			// Without a source the replacement is what every series gets.
			"relabelings": []any{map[string]any{"action": "replace", "targetLabel": seriesLabel, "replacement": m.Name}},
		}},
	}
	return monitor
}

// object returns an object without content, labelled and marked as the instance's.
func (m Metrics) object(version, kind, name string, labels map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(version)
	o.SetKind(kind)
	o.SetNamespace(m.Namespace)
	o.SetName(name)
	all := Labels(m.Name)
	maps.Copy(all, labels)
	o.SetLabels(all)
	o.SetAnnotations(map[string]string{AnnotationInstanceID: m.InstanceID})
	return o
}
