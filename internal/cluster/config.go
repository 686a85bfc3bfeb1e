package cluster

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config is the provider block: zero fields were not set there.
type Config struct {
	// Paths are kubeconfig files (config_path, config_paths).
	Paths []string
	// Content is a kubeconfig itself, plain or base64 (kubeconfig).
	Content string
	// Context selects within whichever kubeconfig is used (config_context).
	Context string
	// Host, Token and the following describe the cluster without a kubeconfig,
	// or replace what the kubeconfig says. Certificates and keys are PEM.
	Host              string
	Token             string
	ClientCertificate string
	ClientKey         string
	CACertificate     string
	TLSServerName     string
	ProxyURL          string
	// Insecure is nil when it was not set.
	Insecure *bool
	// Namespace is the default namespace of instances.
	Namespace string
	// UserAgent names the provider and its version.
	UserAgent string
}

// serviceAccountDir is where a pod finds its own credentials.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// ErrNotConfigured says that neither the provider block nor the environment
// names a cluster.
var ErrNotConfigured = errors.New("no cluster is configured: set host (KUBE_HOST), " +
	"config_path (KUBE_CONFIG_PATH or KUBECONFIG) or kubeconfig (DBAAS_KUBECONFIG)")

// target is where a configuration leads.
type target struct {
	rest      *rest.Config
	namespace string
}

// resolve applies the precedence: host, then a kubeconfig, then the pod that
// we run in; and in each, the block before the environment.
func resolve(c Config, env func(string) string) (target, error) {
	c, err := withEnvironment(c, env)
	if err != nil {
		return target{}, err
	}
	if err := c.check(); err != nil {
		return target{}, err
	}
	api, err := c.kubeconfig(env, serviceAccountDir)
	if err != nil {
		return target{}, err
	}
	client := clientcmd.NewNonInteractiveClientConfig(*api, c.Context, c.overrides(api), nil)
	config, err := client.ClientConfig()
	if err != nil {
		return target{}, fmt.Errorf("read cluster configuration: %w", err)
	}
	if strings.HasPrefix(config.Host, "http://") && c.credentials() {
		return target{}, fmt.Errorf("connect to %s: credentials would cross the network unprotected: "+
			"use https in host (KUBE_HOST)", config.Host)
	}
	namespace, _, err := client.Namespace()
	if err != nil {
		return target{}, fmt.Errorf("read namespace from cluster configuration: %w", err)
	}
	return target{rest: config, namespace: namespace}, nil
}

// withEnvironment completes the block from the environment.
//
// A kubeconfig of the environment may belong to any cluster, so it is used
// only when the block says nothing of its own about the connection. A
// kubeconfig in the block is complete: then KUBE_HOST, KUBE_TOKEN and the like
// are not for it either.
func withEnvironment(c Config, env func(string) string) (Config, error) {
	ownConnection := c.connects()
	if len(c.Paths) == 0 && c.Content == "" {
		if err := c.fillFields(env); err != nil {
			return Config{}, err
		}
	}
	if !ownConnection && c.Host == "" {
		c.fillKubeconfig(env)
	}
	c.Context = first(c.Context, env("KUBE_CTX"))
	c.Namespace = first(c.Namespace, env("KUBE_NAMESPACE"))
	return c, nil
}

// connects says whether the block names anything of the connection. The
// context does not count: it only selects within a kubeconfig.
func (c *Config) connects() bool {
	return len(c.Paths) > 0 || c.Content != "" || c.Host != "" || c.credentials() ||
		c.CACertificate != "" || c.TLSServerName != "" || c.ProxyURL != "" || c.Insecure != nil
}

func (c *Config) credentials() bool {
	return c.Token != "" || c.ClientCertificate != "" || c.ClientKey != ""
}

func (c *Config) fillFields(env func(string) string) error {
	c.Host = first(c.Host, env("KUBE_HOST"))
	// Credentials go together: a token beside somebody else's certificate
	// would make two users of one.
	if !c.credentials() {
		c.Token = env("KUBE_TOKEN")
		c.ClientCertificate = env("KUBE_CLIENT_CERT_DATA")
		c.ClientKey = env("KUBE_CLIENT_KEY_DATA")
	}
	if c.Insecure == nil && c.CACertificate == "" {
		c.CACertificate = env("KUBE_CLUSTER_CA_CERT_DATA")
		if text := env("KUBE_INSECURE"); text != "" {
			insecure, err := strconv.ParseBool(text)
			if err != nil {
				return fmt.Errorf("read KUBE_INSECURE: %q is neither true nor false", text)
			}
			c.Insecure = &insecure
		}
	}
	c.TLSServerName = first(c.TLSServerName, env("KUBE_TLS_SERVER_NAME"))
	c.ProxyURL = first(c.ProxyURL, env("KUBE_PROXY_URL"))
	return nil
}

// fillKubeconfig takes the first kubeconfig that the environment names, from
// the most particular name to the most general.
func (c *Config) fillKubeconfig(env func(string) string) {
	switch {
	case env("DBAAS_KUBECONFIG") != "":
		c.Content = env("DBAAS_KUBECONFIG")
	case env("KUBE_CONFIG_PATH") != "":
		c.Paths = []string{env("KUBE_CONFIG_PATH")}
	case env("KUBE_CONFIG_PATHS") != "":
		c.Paths = filepath.SplitList(env("KUBE_CONFIG_PATHS"))
	case env("KUBECONFIG") != "":
		c.Paths = existing(filepath.SplitList(env("KUBECONFIG")))
	}
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
