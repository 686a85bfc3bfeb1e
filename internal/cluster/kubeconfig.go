package cluster

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ours names the entries that we add to a kubeconfig.
const ours = "terraform-provider-dbaas"

// kubeconfig returns the configuration as a kubeconfig, whatever it was: a
// host, a kubeconfig, or the pod that we run in.
func (c *Config) kubeconfig(env func(string) string, podDir string) (*clientcmdapi.Config, error) {
	switch {
	case c.Host != "":
		c.Context = ""
		return single(clientcmdapi.Cluster{Server: withScheme(c.Host)}, clientcmdapi.AuthInfo{}, ""), nil
	case c.Content != "":
		api, err := parse(c.Content)
		if err != nil {
			return nil, fmt.Errorf("read kubeconfig (DBAAS_KUBECONFIG): %w", err)
		}
		return api, c.checkContext(api)
	case len(c.Paths) > 0:
		api, err := load(c.Paths, env)
		if err != nil {
			return nil, fmt.Errorf("read config_path (KUBE_CONFIG_PATH, KUBE_CONFIG_PATHS, KUBECONFIG): %w", err)
		}
		return api, c.checkContext(api)
	}
	api, err := pod(env, podDir)
	if err != nil {
		return nil, err
	}
	if api == nil && c.connects() {
		return nil, fmt.Errorf("%w; what is set says how to connect, but not to which cluster "+
			"(a kubeconfig of the environment is not used beside arguments in the provider block)", ErrNotConfigured)
	}
	if api == nil {
		return nil, ErrNotConfigured
	}
	c.Context = ""
	return api, nil
}

// single returns a kubeconfig with one cluster, user and context.
func single(cluster clientcmdapi.Cluster, user clientcmdapi.AuthInfo, namespace string) *clientcmdapi.Config {
	api := clientcmdapi.NewConfig()
	api.Clusters[ours] = &cluster
	api.AuthInfos[ours] = &user
	api.Contexts[ours] = &clientcmdapi.Context{Cluster: ours, AuthInfo: ours, Namespace: namespace}
	api.CurrentContext = ours
	return api
}

// withScheme adds https: client-go takes a bare host for plain HTTP.
func withScheme(host string) string {
	if strings.Contains(host, "://") {
		return host
	}
	return "https://" + host
}

// parse reads a kubeconfig that is plain or in base64. The text is secret: it
// is in no error.
func parse(content string) (*clientcmdapi.Config, error) {
	text := []byte(content)
	// No kubeconfig is itself valid base64: it has colons.
	compact := strings.Join(strings.Fields(content), "")
	if decoded, err := base64.StdEncoding.DecodeString(compact); err == nil {
		text = decoded
	}
	api, err := clientcmd.Load(text)
	if err != nil {
		return nil, errors.New("it is neither a kubeconfig in YAML or JSON nor one in base64; write the content of the file, not its path")
	}
	return api, nil
}

// load reads and merges files as kubectl does, but misses none silently.
func load(paths []string, env func(string) string) (*clientcmdapi.Config, error) {
	files := make([]string, len(paths))
	for i, path := range paths {
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(env("HOME"), rest)
		}
		if _, err := os.Stat(path); err != nil {
			return nil, err
		}
		files[i] = path
	}
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: files}
	return rules.Load()
}

// existing drops the files of a list that do not exist: KUBECONFIG may name
// files that are still to be written. If that leaves none, all stay, so that
// the error names them.
func existing(paths []string) []string {
	found := slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		_, err := os.Stat(path)
		return path == "" || errors.Is(err, fs.ErrNotExist)
	})
	if len(found) == 0 {
		return slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return path == "" })
	}
	return found
}

// pod returns the configuration that Kubernetes gives every pod, nil if we are
// in none. The token stays a file: it is replaced while we run.
func pod(env func(string) string, dir string) (*clientcmdapi.Config, error) {
	host, port := env("KUBERNETES_SERVICE_HOST"), env("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, nil
	}
	token, authority := filepath.Join(dir, "token"), filepath.Join(dir, "ca.crt")
	if _, err := os.Stat(token); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read service account token: %w", err)
	}
	namespace, err := os.ReadFile(filepath.Join(dir, "namespace"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read service account namespace: %w", err)
	}
	return single(
		clientcmdapi.Cluster{Server: "https://" + net.JoinHostPort(host, port), CertificateAuthority: authority},
		clientcmdapi.AuthInfo{TokenFile: token},
		strings.TrimSpace(string(namespace)),
	), nil
}

// checkContext wants the context that is asked for, or the current one, and
// names those that are there.
func (c *Config) checkContext(api *clientcmdapi.Config) error {
	name := first(c.Context, api.CurrentContext)
	if _, ok := api.Contexts[name]; ok {
		return nil
	}
	known := "it has no context"
	if len(api.Contexts) > 0 {
		known = "it has: " + strings.Join(slices.Sorted(maps.Keys(api.Contexts)), ", ")
	}
	if name == "" {
		return fmt.Errorf("read kubeconfig: it has no current context: set config_context (KUBE_CTX); %s", known)
	}
	if c.Context == "" {
		return fmt.Errorf("read kubeconfig: its current context %q does not exist; %s", name, known)
	}
	return fmt.Errorf("read kubeconfig: config_context (KUBE_CTX) %q does not exist; %s", name, known)
}

// overrides are the single fields, which win over a kubeconfig's. Credentials
// replace its user as a whole: two ways to log in at once are two users.
func (c *Config) overrides(api *clientcmdapi.Config) *clientcmd.ConfigOverrides {
	o := &clientcmd.ConfigOverrides{
		Context: clientcmdapi.Context{Namespace: c.Namespace},
		ClusterInfo: clientcmdapi.Cluster{
			CertificateAuthorityData: []byte(c.CACertificate),
			InsecureSkipTLSVerify:    c.Insecure != nil && *c.Insecure,
			TLSServerName:            c.TLSServerName,
			ProxyURL:                 c.ProxyURL,
		},
	}
	if c.credentials() {
		api.AuthInfos[ours] = &clientcmdapi.AuthInfo{
			Token:                 c.Token,
			ClientCertificateData: []byte(c.ClientCertificate),
			ClientKeyData:         []byte(c.ClientKey),
		}
		o.Context.AuthInfo = ours
	}
	return o
}
