package acceptance

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// witness stands between provider and fault proxy and notes what the API
// server and the webhooks warn of: the provider's clients keep that to
// themselves.
type witness struct {
	sync.Mutex
	warnings []string
}

// watchWarnings makes the lab's stories go through a new witness.
func (l *lab) watchWarnings() *witness {
	l.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", l.kubeconfig)
	must(l.t, err)
	// It has the tenant's token, so the provider needs none.
	transport, err := rest.TransportFor(config)
	must(l.t, err)
	upstream, err := url.Parse(config.Host)
	must(l.t, err)
	w := &witness{}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport:      transport,
		FlushInterval:  -1, // watches
		ModifyResponse: w.note,
	})
	l.t.Cleanup(server.Close)
	api := clientcmdapi.NewConfig()
	api.Clusters["lab"] = &clientcmdapi.Cluster{Server: server.URL}
	api.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", Namespace: namespace}
	api.CurrentContext = "lab"
	l.kubeconfig = filepath.Join(l.t.TempDir(), "witness.kubeconfig")
	must(l.t, clientcmd.WriteToFile(*api, l.kubeconfig))
	return w
}

func (w *witness) note(answer *http.Response) error {
	w.Lock()
	defer w.Unlock()
	for _, text := range answer.Header.Values("Warning") {
		w.warnings = append(w.warnings, answer.Request.Method+" "+answer.Request.URL.Path+": "+text)
	}
	return nil
}

// said returns the warnings since it was last asked.
func (w *witness) said() []string {
	w.Lock()
	defer w.Unlock()
	defer func() { w.warnings = nil }()
	return slices.Clone(w.warnings)
}

func TestNothingThatIsSentIsWarnedOf(t *testing.T) {
	l := useLab(t)
	w := l.watchWarnings()
	l.provokeWarning()
	if said := w.said(); len(said) != 1 || !strings.Contains(said[0], "unknown field") {
		t.Fatalf("the witness hears %q of a request with an unknown field", said)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             l.nothingLeft("unwarned"),
		Steps: []resource.TestStep{
			{Config: l.config("unwarned", nil)},
			{Config: l.config("unwarned", args{"deletion_protection": "true"})},
			{Config: l.config("unwarned", args{"manage_master_user_password": "true"})},
			{ResourceName: it, ImportState: true},
		},
	})
	if said := w.said(); len(said) > 0 {
		t.Errorf("warnings: %q", said)
	}
	if writes := l.requests("/virtualmachines", "POST", "PATCH", "DELETE"); len(writes) < 3 {
		t.Errorf("only these writes went by the witness: %v", writes)
	}
}

// provokeWarning sends what the API server accepts and warns of; it is a trial
// run, so nothing stands afterwards.
func (l *lab) provokeWarning() {
	l.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", l.kubeconfig)
	must(l.t, err)
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	must(l.t, err)
	_, err = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(namespace).Create(l.t.Context(),
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "provocation"}, "unknownToAll": "x",
		}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	must(l.t, err)
}
