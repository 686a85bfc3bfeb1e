package vm_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

func TestMetricsGolden(t *testing.T) {
	m := vm.Metrics{
		Namespace: "tenant-acme", Name: "orders", InstanceID: "5b9f0a52-7d0f-4c1a-9a55-0b1a6a5d8c11",
		Interval: "15s", Address: "2001:db8::10",
	}
	var all []byte
	for _, object := range []*unstructured.Unstructured{m.Service(), m.Endpoints(), m.ServiceMonitor()} {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, "---\n"...), text...)
	}
	golden(t, "metrics.yaml", all)
}
