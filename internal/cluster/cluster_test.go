package cluster_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wso2/terraform-provider-dbaas/internal/cluster"
)

type environment map[string]string

func (e environment) get(name string) string { return e[name] }

// kubeconfig renders a kubeconfig with one context, "lab".
func kubeconfig(s *apiServer, user string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "lab",
  "clusters": [{"name": "c", "cluster": {"server": %q, "certificate-authority-data": %q}}],
  "users": [{"name": "u", "user": %s}],
  "contexts": [{"name": "lab", "context": {"cluster": "c", "user": "u", "namespace": "tenant-acme"}}]}`,
		s.URL, base64.StdEncoding.EncodeToString([]byte(s.CA)), user)
}

func tokenUser(token string) string { return fmt.Sprintf(`{"token": %q}`, token) }

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// reach makes one request and returns its error.
func reach(t *testing.T, c *cluster.Client) error {
	t.Helper()
	_, err := c.Core.Secrets("tenant-acme").Get(t.Context(), "x", metav1.GetOptions{})
	return err
}

// Every way to configure a cluster leads to a server that checks who comes.
func TestNewLogsIn(t *testing.T) {
	s := newAPIServer(t)
	stranger := newAPIServer(t) // its authority is not the right one
	good := kubeconfig(s, tokenUser(goodToken))
	bad := kubeconfig(s, tokenUser("wrong"))
	exec := file(t, "plugin.sh", "#!/bin/sh\n"+
		`echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"`+goodToken+`"}}'`+"\n")
	plugin := fmt.Sprintf(`{"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": %q, "interactiveMode": "IfAvailable"}}`, exec)
	tokenFile := file(t, "token", goodToken)
	byCertificate := fmt.Sprintf(`{"client-certificate-data": %q, "client-key-data": %q}`,
		base64.StdEncoding.EncodeToString([]byte(s.Certificate)), base64.StdEncoding.EncodeToString([]byte(s.Key)))
	path := func(content string) []string { return []string{file(t, "config", content)} }
	host := cluster.Config{Host: s.URL, CACertificate: s.CA, Token: goodToken}

	for name, test := range map[string]struct {
		config cluster.Config
		env    environment
	}{
		"host and token":                       {config: host},
		"host without a scheme":                {config: cluster.Config{Host: strings.TrimPrefix(s.URL, "https://"), CACertificate: s.CA, Token: goodToken}},
		"host and client certificate":          {config: cluster.Config{Host: s.URL, CACertificate: s.CA, ClientCertificate: s.Certificate, ClientKey: s.Key}},
		"insecure":                             {config: cluster.Config{Host: s.URL, Insecure: new(true), Token: goodToken}},
		"another name in the certificate":      {config: cluster.Config{Host: s.URL, CACertificate: s.CA, TLSServerName: "example.com", Token: goodToken}},
		"kubeconfig, plain":                    {config: cluster.Config{Content: good}},
		"kubeconfig in base64":                 {config: cluster.Config{Content: base64.StdEncoding.EncodeToString([]byte(good))}},
		"kubeconfig in base64, lines of 76":    {config: cluster.Config{Content: wrap(base64.StdEncoding.EncodeToString([]byte(good)), 76)}},
		"kubeconfig with a client certificate": {config: cluster.Config{Content: kubeconfig(s, byCertificate)}},
		"kubeconfig with a token file":         {config: cluster.Config{Content: kubeconfig(s, fmt.Sprintf(`{"tokenFile": %q}`, tokenFile))}},
		"kubeconfig with an exec plugin":       {config: cluster.Config{Content: kubeconfig(s, plugin)}},
		"config_path":                          {config: cluster.Config{Paths: path(good)}},
		"config_paths, merged":                 {config: cluster.Config{Paths: append(path(`{"apiVersion": "v1", "kind": "Config"}`), path(good)...)}},
		"config_context":                       {config: cluster.Config{Content: strings.ReplaceAll(good, `"current-context": "lab"`, `"current-context": "other"`), Context: "lab"}},
		"insecure beside a kubeconfig":         {config: cluster.Config{Content: strings.Replace(good, base64.StdEncoding.EncodeToString([]byte(s.CA)), base64.StdEncoding.EncodeToString([]byte(stranger.CA)), 1), Insecure: new(true)}},
		"token instead of a kubeconfig's user": {config: cluster.Config{Content: kubeconfig(s, byCertificate), Token: goodToken}},
		"KUBE_HOST and the like":               {env: environment{"KUBE_HOST": s.URL, "KUBE_CLUSTER_CA_CERT_DATA": s.CA, "KUBE_TOKEN": goodToken}},
		"KUBE_CLIENT_CERT_DATA":                {env: environment{"KUBE_HOST": s.URL, "KUBE_CLUSTER_CA_CERT_DATA": s.CA, "KUBE_CLIENT_CERT_DATA": s.Certificate, "KUBE_CLIENT_KEY_DATA": s.Key}},
		"KUBE_INSECURE":                        {env: environment{"KUBE_HOST": s.URL, "KUBE_INSECURE": "true", "KUBE_TOKEN": goodToken}},
		"KUBE_TLS_SERVER_NAME":                 {env: environment{"KUBE_HOST": s.URL, "KUBE_CLUSTER_CA_CERT_DATA": s.CA, "KUBE_TLS_SERVER_NAME": "example.com", "KUBE_TOKEN": goodToken}},
		"KUBE_CONFIG_PATH":                     {env: environment{"KUBE_CONFIG_PATH": path(good)[0]}},
		"KUBE_CONFIG_PATHS":                    {env: environment{"KUBE_CONFIG_PATHS": path(`{"apiVersion": "v1", "kind": "Config"}`)[0] + ":" + path(good)[0]}},
		"KUBECONFIG, partly missing":           {env: environment{"KUBECONFIG": "/nonexistent/config:" + path(good)[0]}},
		"DBAAS_KUBECONFIG":                     {env: environment{"DBAAS_KUBECONFIG": base64.StdEncoding.EncodeToString([]byte(good))}},
		"KUBE_CTX":                             {config: cluster.Config{Content: strings.ReplaceAll(good, `"current-context": "lab"`, `"current-context": "other"`)}, env: environment{"KUBE_CTX": "lab"}},
		"home directory":                       {config: cluster.Config{Paths: []string{"~/config"}}, env: environment{"HOME": filepath.Dir(path(good)[0])}},

		// Precedence.
		"token from the environment, host from the block": {config: cluster.Config{Host: s.URL, CACertificate: s.CA}, env: environment{"KUBE_TOKEN": goodToken}},
		"host beats a kubeconfig in the block":            {config: cluster.Config{Host: s.URL, CACertificate: s.CA, Token: goodToken, Content: bad}},
		"host beats the environment's kubeconfig":         {config: host, env: environment{"KUBECONFIG": "/nonexistent", "DBAAS_KUBECONFIG": bad}},
		"KUBE_HOST beats KUBECONFIG":                      {env: environment{"KUBE_HOST": s.URL, "KUBE_CLUSTER_CA_CERT_DATA": s.CA, "KUBE_TOKEN": goodToken, "KUBECONFIG": "/nonexistent"}},
		"the block's kubeconfig beats KUBE_HOST":          {config: cluster.Config{Content: good}, env: environment{"KUBE_HOST": stranger.URL, "KUBE_TOKEN": "wrong"}},
		"the block's kubeconfig beats KUBECONFIG":         {config: cluster.Config{Content: good}, env: environment{"KUBECONFIG": "/nonexistent", "KUBE_CONFIG_PATH": path(bad)[0]}},
		"the block's certificate beats KUBE_TOKEN":        {config: cluster.Config{Host: s.URL, CACertificate: s.CA, ClientCertificate: s.Certificate, ClientKey: s.Key}, env: environment{"KUBE_TOKEN": "wrong"}},
		"the block's CA beats KUBE_INSECURE":              {config: host, env: environment{"KUBE_INSECURE": "true"}},
		"KUBE_CONFIG_PATH beats KUBECONFIG":               {env: environment{"KUBE_CONFIG_PATH": path(good)[0], "KUBECONFIG": path(bad)[0]}},
		"KUBE_TOKEN beside KUBECONFIG":                    {env: environment{"KUBECONFIG": path(bad)[0], "KUBE_TOKEN": goodToken}},
		"a context alone leaves KUBECONFIG in use":        {config: cluster.Config{Context: "lab"}, env: environment{"KUBECONFIG": path(good)[0]}},
		"a kubeconfig beats the pod":                      {config: cluster.Config{Content: good}, env: environment{"KUBERNETES_SERVICE_HOST": "192.0.2.1", "KUBERNETES_SERVICE_PORT": "443"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := cluster.New(test.config, test.env.get)
			if err != nil {
				t.Fatal(err)
			}
			if err := reach(t, c); err != nil {
				t.Errorf("request: %v", err)
			}
		})
	}
}

func wrap(text string, width int) string {
	return strings.Join(slices.Collect(func(yield func(string) bool) {
		for part := range slices.Chunk([]byte(text), width) {
			if !yield(string(part)) {
				return
			}
		}
	}), "\n")
}

// The server refuses who should be refused; else the test above shows nothing.
func TestNewIsRefusedWithoutTheRightCredentials(t *testing.T) {
	s, stranger := newAPIServer(t), newAPIServer(t)
	for name, config := range map[string]cluster.Config{
		"no credentials":     {Host: s.URL, CACertificate: s.CA},
		"wrong token":        {Host: s.URL, CACertificate: s.CA, Token: "wrong"},
		"unknown authority":  {Host: s.URL, Token: goodToken},
		"other authority":    {Host: s.URL, CACertificate: stranger.Certificate, Token: goodToken},
		"wrong server name":  {Host: s.URL, CACertificate: s.CA, TLSServerName: "other.test", Token: goodToken},
		"other client":       {Host: s.URL, CACertificate: s.CA, ClientCertificate: stranger.Certificate, ClientKey: stranger.Key},
		"kubeconfig's user":  {Content: kubeconfig(s, tokenUser("wrong"))},
		"secure again":       {Host: s.URL, Insecure: new(false), Token: goodToken},
		"through no gateway": {Host: s.URL, CACertificate: s.CA, Token: goodToken, ProxyURL: "http://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := cluster.New(config, environment{}.get)
			if err != nil {
				t.Fatal(err)
			}
			err = reach(t, c)
			if err == nil {
				t.Fatal("the request succeeded")
			}
			if strings.Contains(err.Error(), goodToken) {
				t.Errorf("the error shows the token: %v", err)
			}
		})
	}
}

func TestEveryClientOfOneClusterLogsInAndNamesTheProvider(t *testing.T) {
	s := newAPIServer(t)
	c, err := cluster.New(cluster.Config{
		Host: s.URL, CACertificate: s.CA, Token: goodToken, UserAgent: "terraform-provider-dbaas/1.2.3",
	}, environment{}.get)
	if err != nil {
		t.Fatal(err)
	}
	if paths, _ := s.requests(); len(paths) != 0 {
		t.Errorf("New made requests: %v", paths)
	}
	if err := reach(t, c); err != nil {
		t.Error(err)
	}
	if v, err := c.VirtualMachines.VirtualMachines("n").Get(t.Context(), "pg-orders", metav1.GetOptions{}); err != nil || v.Name != "pg-orders" {
		t.Errorf("virtual machine: %v, %v", v, err)
	}
	if i, err := c.Images("default").Get(t.Context(), "debian-12", metav1.GetOptions{}); err != nil || i.Status.StorageClassName != "lh-1" {
		t.Errorf("image: %v, %v", i, err)
	}
	if _, err := c.Images("default").Get(t.Context(), "absent", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("absent image: %v, want a not-found error", err)
	}
	things := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "things"}
	if _, err := c.Dynamic.Resource(things).Namespace("n").Get(t.Context(), "x", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	_, agents := s.requests()
	for _, agent := range agents {
		if agent != "terraform-provider-dbaas/1.2.3" {
			t.Errorf("user agent %q", agent)
		}
	}
}

func TestNamespace(t *testing.T) {
	s := newAPIServer(t)
	withContext := kubeconfig(s, tokenUser(goodToken))
	for name, test := range map[string]struct {
		config cluster.Config
		env    environment
		want   string
	}{
		"the block's":         {cluster.Config{Content: withContext, Namespace: "mine"}, environment{"KUBE_NAMESPACE": "other"}, "mine"},
		"KUBE_NAMESPACE":      {cluster.Config{Content: withContext}, environment{"KUBE_NAMESPACE": "other"}, "other"},
		"the context's":       {cluster.Config{Content: withContext}, nil, "tenant-acme"},
		"a host has none":     {cluster.Config{Host: s.URL}, nil, "default"},
		"a host, KUBE_CTX":    {cluster.Config{Host: s.URL}, environment{"KUBE_CTX": "lab"}, "default"},
		"a context with none": {cluster.Config{Content: strings.Replace(withContext, `, "namespace": "tenant-acme"`, "", 1)}, nil, "default"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := cluster.New(test.config, test.env.get)
			if err != nil {
				t.Fatal(err)
			}
			if c.Namespace != test.want {
				t.Errorf("namespace %q, want %q", c.Namespace, test.want)
			}
		})
	}
}
