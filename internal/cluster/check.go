package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
)

// check finds what cannot work, and says which argument it is. No secret is in
// its errors.
func (c *Config) check() error {
	if len(c.Paths) > 0 && c.Content != "" {
		return errors.New("read provider configuration: set either config_path or kubeconfig, not both")
	}
	if c.Insecure != nil && *c.Insecure && c.CACertificate != "" {
		return errors.New("read provider configuration: set either insecure (KUBE_INSECURE) or " +
			"cluster_ca_certificate (KUBE_CLUSTER_CA_CERT_DATA), not both: without verification the certificate has no use")
	}
	if c.Token != "" && (c.ClientCertificate != "" || c.ClientKey != "") {
		return errors.New("read provider configuration: set either token (KUBE_TOKEN) or client_certificate and client_key, not both")
	}
	if (c.ClientCertificate == "") != (c.ClientKey == "") {
		return errors.New("read provider configuration: client_certificate (KUBE_CLIENT_CERT_DATA) and " +
			"client_key (KUBE_CLIENT_KEY_DATA) go together; set the one that is not set")
	}
	if c.ClientCertificate != "" {
		if _, err := tls.X509KeyPair([]byte(c.ClientCertificate), []byte(c.ClientKey)); err != nil {
			return fmt.Errorf("read client_certificate (KUBE_CLIENT_CERT_DATA) and client_key (KUBE_CLIENT_KEY_DATA): %w", err)
		}
	}
	if c.CACertificate != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(c.CACertificate)) {
		return errors.New("read cluster_ca_certificate (KUBE_CLUSTER_CA_CERT_DATA): it holds no certificate in PEM; write the content of the file, not its path")
	}
	if err := checkURL(c.ProxyURL, "http", "https", "socks5"); c.ProxyURL != "" && err != nil {
		return fmt.Errorf("read proxy_url (KUBE_PROXY_URL): %w", err)
	}
	if err := checkURL(withScheme(c.Host), "https", "http"); c.Host != "" && err != nil {
		return fmt.Errorf("read host (KUBE_HOST): %w", err)
	}
	return nil
}

// checkURL wants a host behind one of the schemes. A URL may hold a password,
// so the error does not repeat it.
func checkURL(text string, schemes ...string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return errors.New("it is not a URL with a host, such as https://harvester.example.com:6443")
	}
	if slices.Contains(schemes, u.Scheme) {
		return nil
	}
	return fmt.Errorf("its scheme is %q; write one of %v", u.Scheme, schemes)
}
