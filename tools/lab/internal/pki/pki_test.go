package pki

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestCertificatesAreGoodForWhatTheyAreFor(t *testing.T) {
	folder := t.TempDir()
	if err := Create(folder); err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		t.Fatal("ca.crt holds no certificate")
	}
	for _, c := range certificates() {
		pair, err := tls.LoadX509KeyPair(filepath.Join(folder, c.file+".crt"), filepath.Join(folder, c.file+".key"))
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		usage := x509.ExtKeyUsageClientAuth
		if len(c.names) > 0 {
			usage = x509.ExtKeyUsageServerAuth
		}
		for _, name := range append([]string{""}, c.names...) {
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
				t.Errorf("%s for %q: %v", c.file, name, err)
			}
		}
	}
}

func TestCreateKeepsWhatIsThere(t *testing.T) {
	folder := t.TempDir()
	read := func() string {
		t.Helper()
		if err := Create(folder); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(folder, "apiserver.crt"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if first, second := read(), read(); first != second {
		t.Error("the second Create made a new certificate")
	}
}

func TestEachUserHasItsOwnToken(t *testing.T) {
	folder := t.TempDir()
	if err := Create(folder); err != nil {
		t.Fatal(err)
	}
	if err := CreateUsers(folder, "https://127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, u := range users() {
		config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(folder, u.file+".kubeconfig"))
		if err != nil {
			t.Fatal(err)
		}
		token, err := os.ReadFile(config.BearerTokenFile)
		if err != nil {
			t.Fatal(err)
		}
		if other := seen[string(token)]; other != "" {
			t.Errorf("%s and %s have one token", u.file, other)
		}
		seen[string(token)] = u.file
	}
}
