package crd

import (
	_ "embed"
	"strings"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ours are the definitions that no module of the lab carries: the monitoring
// operator's ServiceMonitor and the DBaaS operator's DBInstance, as far as the
// provider meets them.
//
//go:embed definitions.yaml
var ours []byte

// opaque makes definitions without a schema for kinds that Harvester's webhooks
// and controllers list, but that play no part in the lab: Rancher's, Fleet's,
// Cluster API's and the logging operator's.
func opaque() []*extv1.CustomResourceDefinition {
	var all []*extv1.CustomResourceDefinition
	for _, kind := range []struct {
		group, version, kind, plural string
		scope                        extv1.ResourceScope
	}{
		{"cluster.x-k8s.io", "v1beta1", "Cluster", "clusters", extv1.NamespaceScoped},
		{"cluster.x-k8s.io", "v1beta1", "Machine", "machines", extv1.NamespaceScoped},
		{"management.cattle.io", "v3", "ManagedChart", "managedcharts", extv1.NamespaceScoped},
		{"management.cattle.io", "v3", "Feature", "features", extv1.ClusterScoped},
		{"management.cattle.io", "v3", "Setting", "settings", extv1.ClusterScoped},
		{"fleet.cattle.io", "v1alpha1", "Cluster", "clusters", extv1.NamespaceScoped},
		{"fleet.cattle.io", "v1alpha1", "Bundle", "bundles", extv1.NamespaceScoped},
		{"fleet.cattle.io", "v1alpha1", "BundleDeployment", "bundledeployments", extv1.NamespaceScoped},
		{"logging.banzaicloud.io", "v1beta1", "Flow", "flows", extv1.NamespaceScoped},
		{"logging.banzaicloud.io", "v1beta1", "Output", "outputs", extv1.NamespaceScoped},
		{"logging.banzaicloud.io", "v1beta1", "ClusterFlow", "clusterflows", extv1.NamespaceScoped},
		{"logging.banzaicloud.io", "v1beta1", "ClusterOutput", "clusteroutputs", extv1.NamespaceScoped},
	} {
		all = append(all, &extv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: kind.plural + "." + kind.group},
			Spec: extv1.CustomResourceDefinitionSpec{
				Group: kind.group,
				Names: extv1.CustomResourceDefinitionNames{Kind: kind.kind, Plural: kind.plural, Singular: strings.ToLower(kind.kind)},
				Scope: kind.scope,
				Versions: []extv1.CustomResourceDefinitionVersion{{
					Name: kind.version, Served: true, Storage: true,
					Schema: &extv1.CustomResourceValidation{OpenAPIV3Schema: &extv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
				}},
			},
		})
	}
	return all
}
