// Package sample is a document that was written by hand, to prove guests without
// the provider: PostgreSQL over TLS on the disk with the serial "pgdata", and
// /run/lab-ready once it answers. Both the guests' own tests and those through
// a VirtualMachine boot it.
package sample

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	_ "embed"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"
)

var (
	//go:embed user-data.yaml
	source string
	//go:embed setup.sh
	setup []byte
)

// validity is how long before and after now the certificates hold.
const validity = 24 * time.Hour

// A Document is user data and what a client needs to trust its server.
type Document struct {
	// UserData is a cloud-config.
	UserData []byte
	// CA is the certificate authority's file.
	CA string
}

// New makes a document with keys of its own; the CA's file is put into folder.
func New(t testing.TB, folder string) Document {
	t.Helper()
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sample CA"},
		NotBefore: now.Add(-validity), NotAfter: now.Add(validity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "sample"},
		NotBefore: now.Add(-validity), NotAfter: now.Add(validity),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	authorityKey, serverKey := newKey(t), newKey(t)
	ca := sign(t, authority, authority, authorityKey, authorityKey)
	der, err := x509.MarshalPKCS8PrivateKey(serverKey)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	encode := base64.StdEncoding.EncodeToString
	err = template.Must(template.New("user-data").Parse(source)).Execute(&out, map[string]string{
		"Setup":       encode(setup),
		"Certificate": encode(sign(t, server, authority, serverKey, authorityKey)),
		"Key":         encode(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	d := Document{UserData: out.Bytes(), CA: filepath.Join(folder, "ca.crt")}
	if err := os.WriteFile(d.CA, ca, 0o644); err != nil {
		t.Fatal(err)
	}
	return d
}

// Query logs in at the address over TLS, with the server's certificate checked
// against the CA, and returns what psql prints for the SQL.
func (d Document) Query(ctx context.Context, address netip.Addr, sql string) (string, error) {
	cmd := exec.CommandContext(ctx, "psql", "-XAtq", "-c", sql, fmt.Sprintf(
		"host=%s user=app dbname=postgres sslmode=verify-ca sslrootcert=%s connect_timeout=5", address, d.CA))
	cmd.Env = append(os.Environ(), "PGPASSWORD=written-by-hand")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("run psql: %w: %s", err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, certificate, authority *x509.Certificate, key, signer *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, certificate, authority, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
