// Package kubevirt makes what KubeVirt's operator would install beside its
// definitions. The lab runs no operator: there are no images to deploy.
package kubevirt

import (
	"encoding/json"
	"fmt"
	"io"

	apiregv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
)

// Namespace is where virt-api and virt-controller believe to run: they read it
// from a mounted service account, and without one take this.
const Namespace = "kubevirt"

// WriteHooks writes KubeVirt's admission webhooks and its aggregated API, one
// JSON object a line, as its operator would create them. The caller fills in
// the certificate authority and the port, which differ between labs.
func WriteHooks(w io.Writer) error {
	objects := []any{
		components.NewVirtAPIMutatingWebhookConfiguration(Namespace),
		components.NewVirtAPIValidatingWebhookConfiguration(Namespace),
	}
	for _, service := range components.NewVirtAPIAPIServices(Namespace) {
		service.Status = apiregv1.APIServiceStatus{}
		objects = append(objects, service)
	}
	out := json.NewEncoder(w)
	for _, o := range objects {
		if err := out.Encode(o); err != nil {
			return fmt.Errorf("write hook: %w", err)
		}
	}
	return nil
}
