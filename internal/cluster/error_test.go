package cluster_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/wso2/terraform-provider-dbaas/internal/cluster"
)

// Each mistake is told with the names of the argument and of its environment
// variable, and without what is secret.
func TestNewRefuses(t *testing.T) {
	s := newAPIServer(t)
	good := kubeconfig(s, tokenUser(goodToken))
	for name, test := range map[string]struct {
		config cluster.Config
		env    environment
		want   []string
	}{
		"nothing":                     {want: []string{"no cluster is configured", "host (KUBE_HOST)", "KUBECONFIG", "DBAAS_KUBECONFIG"}},
		"nothing but a context":       {config: cluster.Config{Context: "lab"}, want: []string{"no cluster is configured"}},
		"a token alone":               {config: cluster.Config{Token: goodToken}, want: []string{"no cluster is configured", "not to which cluster"}},
		"a token beside KUBECONFIG":   {config: cluster.Config{Token: goodToken}, env: environment{"KUBECONFIG": file(t, "config", good)}, want: []string{"no cluster is configured", "is not used beside arguments"}},
		"two kubeconfigs":             {config: cluster.Config{Paths: []string{"a"}, Content: good}, want: []string{"either config_path or kubeconfig"}},
		"two users":                   {config: cluster.Config{Host: s.URL, Token: goodToken, ClientCertificate: s.Certificate, ClientKey: s.Key}, want: []string{"either token (KUBE_TOKEN)"}},
		"a certificate without a key": {config: cluster.Config{Host: s.URL, ClientCertificate: s.Certificate}, want: []string{"client_key (KUBE_CLIENT_KEY_DATA)"}},
		"a key of another":            {config: cluster.Config{Host: s.URL, ClientCertificate: s.Certificate, ClientKey: newAPIServer(t).Key}, want: []string{"client_certificate (KUBE_CLIENT_CERT_DATA)"}},
		"an authority that is none":   {config: cluster.Config{Host: s.URL, CACertificate: "-----BEGIN"}, want: []string{"cluster_ca_certificate (KUBE_CLUSTER_CA_CERT_DATA)"}},
		"insecure with an authority":  {config: cluster.Config{Host: s.URL, CACertificate: s.CA, Insecure: new(true)}, want: []string{"insecure (KUBE_INSECURE)", "cluster_ca_certificate"}},
		"KUBE_INSECURE that is none":  {env: environment{"KUBE_HOST": s.URL, "KUBE_INSECURE": "yes please"}, want: []string{"KUBE_INSECURE", "yes please"}},
		"a host that is none":         {config: cluster.Config{Host: "https://"}, want: []string{"host (KUBE_HOST)"}},
		"a host of another kind":      {config: cluster.Config{Host: "ftp://x"}, want: []string{"host (KUBE_HOST)", "ftp"}},
		"a token in the clear":        {config: cluster.Config{Host: "http://127.0.0.1:1", Token: goodToken}, want: []string{"host (KUBE_HOST)", "unprotected"}},
		"a gateway that is none":      {config: cluster.Config{Host: s.URL, ProxyURL: "nowhere"}, want: []string{"proxy_url (KUBE_PROXY_URL)"}},
		"no such file":                {config: cluster.Config{Paths: []string{"/nonexistent/config"}}, want: []string{"config_path (KUBE_CONFIG_PATH", "/nonexistent/config"}},
		"one of two files":            {config: cluster.Config{Paths: []string{file(t, "config", good), "/nonexistent/config"}}, want: []string{"/nonexistent/config"}},
		"no file of KUBECONFIG":       {env: environment{"KUBECONFIG": "/nonexistent/a:/nonexistent/b"}, want: []string{"KUBECONFIG", "/nonexistent/a"}},
		"content that is none":        {config: cluster.Config{Content: goodToken}, want: []string{"kubeconfig (DBAAS_KUBECONFIG)"}},
		"content in broken base64":    {config: cluster.Config{Content: base64.StdEncoding.EncodeToString([]byte(goodToken+": [")) + "="}, want: []string{"kubeconfig (DBAAS_KUBECONFIG)"}},
		"broken content":              {config: cluster.Config{Content: "users: [" + goodToken}, want: []string{"kubeconfig (DBAAS_KUBECONFIG)"}},
		"no such context":             {config: cluster.Config{Content: good, Context: "prod"}, want: []string{"config_context (KUBE_CTX)", `"prod"`, "it has: lab"}},
		"no current context":          {config: cluster.Config{Content: strings.ReplaceAll(good, `"current-context": "lab"`, `"current-context": ""`)}, want: []string{"config_context (KUBE_CTX)", "it has: lab"}},
		"current context is missing":  {config: cluster.Config{Content: strings.ReplaceAll(good, `"current-context": "lab"`, `"current-context": "gone"`)}, want: []string{`"gone"`, "it has: lab"}},
		"an empty kubeconfig":         {config: cluster.Config{Content: `{"apiVersion": "v1", "kind": "Config"}`}, want: []string{"it has no context"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := cluster.New(test.config, test.env.get)
			if err == nil {
				t.Fatal("New succeeded")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error lacks %q: %v", want, err)
				}
			}
			if strings.Contains(err.Error(), goodToken) || strings.Contains(err.Error(), "localhost") {
				t.Errorf("error shows a secret, or leads to localhost: %v", err)
			}
		})
	}
}

func TestNothingConfiguredIsToBeTold(t *testing.T) {
	_, err := cluster.New(cluster.Config{}, environment{"HOME": t.TempDir()}.get)
	if !errors.Is(err, cluster.ErrNotConfigured) {
		t.Errorf("error %v, want ErrNotConfigured", err)
	}
}
