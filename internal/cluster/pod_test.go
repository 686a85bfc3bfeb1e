package cluster

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// A pod finds address, authority, token and namespace where Kubernetes puts
// them; the token is read again when the file changes, so it stays a file.
func TestAPodConfiguresItself(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer pod-token" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x"}}`))
	}))
	t.Cleanup(s.Close)
	address, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	env := func(name string) string {
		return map[string]string{
			"KUBERNETES_SERVICE_HOST": address.Hostname(), "KUBERNETES_SERVICE_PORT": address.Port(),
		}[name]
	}
	dir := t.TempDir()
	var c Config
	if _, err := c.kubeconfig(env, dir); err == nil {
		t.Error("a service address without a token counts as a pod")
	}
	for name, content := range map[string]string{
		"token":     "pod-token",
		"namespace": "tenant-acme\n",
		"ca.crt":    string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	api, err := c.kubeconfig(env, dir)
	if err != nil {
		t.Fatal(err)
	}
	config := clientcmd.NewNonInteractiveClientConfig(*api, "", c.overrides(api), nil)
	namespace, _, err := config.Namespace()
	if err != nil || namespace != "tenant-acme" {
		t.Errorf("namespace %q, %v, want the pod's", namespace, err)
	}
	rest, err := config.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	if rest.BearerTokenFile != filepath.Join(dir, "token") {
		t.Errorf("token file %q, want the pod's", rest.BearerTokenFile)
	}
	client, err := connect(rest, namespace)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Core.Secrets("n").Get(t.Context(), "x", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
