// Package pki makes the certificate authority, certificates and tokens of one lab.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lifetime is longer than any lab lives.
const lifetime = 10 * 365 * 24 * time.Hour

// A certificate of the lab: for a server if it has names, else for a client.
type certificate struct {
	file         string
	commonName   string
	organization []string
	names        []string
}

// certificates lists what the pieces need. The names in them are not free:
// KubeVirt and the API server check them.
func certificates() []certificate {
	local := []string{"localhost", "127.0.0.1"}
	return []certificate{
		{file: "apiserver", commonName: "kube-apiserver", names: append([]string{"kubernetes", "kubernetes.default.svc", "10.53.0.1"}, local...)},
		{file: "front-proxy", commonName: "front-proxy"},
		{file: "virt-api", commonName: "virt-api.kubevirt.svc", names: append([]string{"virt-api.kubevirt.svc"}, local...)},
		{file: "virt-handler", commonName: "kubevirt.io:system:node:virt-handler", names: append([]string{"kubevirt.io:system:node:virt-handler"}, local...)},
		{file: "virt-handler-client", commonName: "kubevirt.io:system:client:virt-handler"},
		{file: "harvester-webhook", commonName: "harvester-webhook.harvester-system.svc", names: append([]string{"harvester-webhook.harvester-system.svc"}, local...)},
		{file: "kubelet", commonName: "system:node:node1", organization: []string{"system:nodes"}, names: append([]string{"node1", "node2"}, local...)},
		{file: "kubelet-client", commonName: "kube-apiserver-kubelet-client", organization: []string{"system:masters"}},
		{file: "proxy", commonName: "fault-proxy", names: local},
	}
}

// Create writes ca.crt, ca.key, sa.key (which signs service account tokens) and
// NAME.crt and NAME.key of every certificate to the folder, unless they exist.
func Create(folder string) error {
	if _, err := os.Stat(filepath.Join(folder, "ca.crt")); err == nil {
		return nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if _, err := newKey(filepath.Join(folder, "sa.key")); err != nil {
		return err
	}
	key, err := newKey(filepath.Join(folder, "ca.key"))
	if err != nil {
		return err
	}
	authority, err := template("lab-ca")
	if err != nil {
		return err
	}
	authority.IsCA, authority.BasicConstraintsValid = true, true
	authority.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	authorityFile := filepath.Join(folder, "ca.crt.new")
	if err := sign(authorityFile, authority, authority, key, key); err != nil {
		return err
	}
	for _, c := range certificates() {
		own, err := newKey(filepath.Join(folder, c.file+".key"))
		if err != nil {
			return err
		}
		t, err := c.template()
		if err != nil {
			return err
		}
		if err := sign(filepath.Join(folder, c.file+".crt"), t, authority, own, key); err != nil {
			return err
		}
	}
	// Last: its presence says that all the others are there.
	return os.Rename(authorityFile, filepath.Join(folder, "ca.crt"))
}

func (c certificate) template() (*x509.Certificate, error) {
	t, err := template(c.commonName)
	if err != nil {
		return nil, err
	}
	t.Subject.Organization = c.organization
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(c.names) > 0 {
		t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	for _, name := range c.names {
		if ip := net.ParseIP(name); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, name)
		}
	}
	return t, nil
}

func template(commonName string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: commonName},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(lifetime),
	}, nil
}

func sign(file string, t, parent *x509.Certificate, own, parentKey *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, t, parent, &own.PublicKey, parentKey)
	if err != nil {
		return fmt.Errorf("sign certificate %s: %w", t.Subject.CommonName, err)
	}
	return writePEM(file, "CERTIFICATE", der)
}

func newKey(file string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	// Not PKCS 8: the API server reads a service account key only in this form.
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writePEM(file, "EC PRIVATE KEY", der)
}

func writePEM(file, kind string, der []byte) (err error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return pem.Encode(f, &pem.Block{Type: kind, Bytes: der})
}
