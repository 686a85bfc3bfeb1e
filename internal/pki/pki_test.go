package pki_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wso2/terraform-provider-dbaas/internal/pki"
)

func now() time.Time { return time.Date(2026, 2, 28, 12, 0, 0, 0, time.UTC) }

func authority(t *testing.T) pki.Authority {
	t.Helper()
	a, err := pki.NewAuthority("pg-orders", now())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestNewAuthorityMaySignServersAndNothingElse(t *testing.T) {
	certificate, err := pki.ParseCertificate(authority(t).CertPEM)
	if err != nil {
		t.Fatal(err)
	}
	type facts struct {
		Name                string
		NotBefore, NotAfter time.Time
		IsCA, PathLenZero   bool
		Usage               x509.KeyUsage
		Curve               elliptic.Curve
	}
	want := facts{
		Name: "pg-orders", NotBefore: now().Add(-24 * time.Hour), NotAfter: now().AddDate(10, 0, 0),
		IsCA: true, PathLenZero: true, Usage: x509.KeyUsageCertSign, Curve: elliptic.P256(),
	}
	got := facts{
		certificate.Subject.CommonName, certificate.NotBefore, certificate.NotAfter, certificate.IsCA,
		certificate.MaxPathLen == 0 && certificate.MaxPathLenZero, certificate.KeyUsage,
		certificate.PublicKey.(*ecdsa.PublicKey).Curve,
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b elliptic.Curve) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if certificate.SerialNumber.Sign() <= 0 || len(certificate.SubjectKeyId) == 0 {
		t.Error("the serial is not positive, or there is no subject key id")
	}
}

func TestTwoAuthoritiesShareNothing(t *testing.T) {
	one, other := authority(t), authority(t)
	if one.CertPEM == other.CertPEM || one.KeyPEM == other.KeyPEM {
		t.Error("equal")
	}
}

func TestAServerCertificateOfTheAuthorityVerifies(t *testing.T) {
	a := authority(t)
	ca, err := pki.ParseCertificate(a.CertPEM)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(a.KeyPEM))
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), DNSNames: []string{"db.example.test"},
		NotBefore: now(), NotAfter: now().AddDate(1, 0, 0), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, key.(*ecdsa.PrivateKey).Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "db.example.test", CurrentTime: now()}); err != nil {
		t.Error(err)
	}
}

func TestParseCertificateSaysWhatItFound(t *testing.T) {
	a := authority(t)
	for name, test := range map[string]struct{ text, want string }{
		"nothing":          {" \n", "empty"},
		"no PEM":           {"hello", "5 bytes that are not PEM"},
		"a key":            {a.KeyPEM, `type "PRIVATE KEY"`},
		"two certificates": {a.CertPEM + authority(t).CertPEM, "more than one"},
		"text after it":    {a.CertPEM + "x", "more than one PEM block, or text after"},
		"text before it":   {"x\n" + a.CertPEM, "text before"},
		"broken DER":       {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "x509"},
		"a server's":       {leaf(t), "not an authority"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := pki.ParseCertificate(test.text)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestCheckKey(t *testing.T) {
	a, other := authority(t), authority(t)
	block, _ := pem.Decode([]byte(a.KeyPEM))
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(key.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ key, want string }{
		"its own":              {a.KeyPEM, ""},
		"its own, SEC 1":       {string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1})), ""},
		"another's":            {other.KeyPEM, "does not belong"},
		"an RSA key":           {rsaKey(t), "does not belong"},
		"a certificate":        {a.CertPEM, `type "CERTIFICATE"`},
		"nothing":              {"", "empty"},
		"not a key in the PEM": {"-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n", "holds no key"},
	} {
		t.Run(name, func(t *testing.T) {
			err := pki.CheckKey(a.CertPEM, test.key)
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestErrorsNeverQuoteAKey(t *testing.T) {
	const secret = "hunter2hunter2"
	for _, text := range []string{secret, "-----BEGIN PRIVATE KEY-----\n" + secret + "\n-----END PRIVATE KEY-----\n"} {
		for _, err := range []error{pki.CheckKey(authority(t).CertPEM, text), pki.CheckKey(text, text)} {
			if err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("got error %v", err)
			}
		}
	}
}

func leaf(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "server"}, NotAfter: now()}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func rsaKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}
