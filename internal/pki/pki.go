// Package pki makes and reads the certificate authority of an instance.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
)

const (
	lifetimeYears = 10
	// backdate tolerates clients and machines whose clock is behind.
	backdate = 24 * time.Hour

	certificateType = "CERTIFICATE"
	keyType         = "PRIVATE KEY"
)

// An Authority is an instance's certificate authority.
type Authority struct {
	// CertPEM is the certificate, one PEM block.
	CertPEM string
	// KeyPEM is its private key, PKCS #8, one PEM block. It is a secret.
	KeyPEM string
}

// NewAuthority draws an ECDSA P-256 key and issues the certificate of an
// authority that may sign server certificates, and no further authority, for
// ten years from now.
func NewAuthority(commonName string, now time.Time) (Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Authority{}, fmt.Errorf("draw CA key: %w", err)
	}
	// RFC 5280 wants a positive serial of at most 20 octets.
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return Authority{}, fmt.Errorf("draw CA serial: %w", err)
	}
	serial.Add(serial, big.NewInt(1))
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: commonName},
		NotBefore:             now.Add(-backdate).UTC(),
		NotAfter:              now.AddDate(lifetimeYears, 0, 0).UTC(),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return Authority{}, fmt.Errorf("issue CA certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Authority{}, fmt.Errorf("encode CA key: %w", err)
	}
	return Authority{CertPEM: encode(certificateType, der), KeyPEM: encode(keyType, keyDER)}, nil
}

// ParseCertificate reads the one certificate of an authority that text holds.
// Anything else is an error that says what was found.
func ParseCertificate(text string) (*x509.Certificate, error) {
	block, err := onlyBlock(text)
	if err != nil {
		return nil, fmt.Errorf("parse CA certificate: %w", err)
	}
	if block.Type != certificateType {
		return nil, fmt.Errorf("parse CA certificate: found a PEM block of type %q", block.Type)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse CA certificate: %w", err)
	}
	if !certificate.IsCA {
		return nil, fmt.Errorf("parse CA certificate: found the certificate of %q, which is not an authority", certificate.Subject)
	}
	return certificate, nil
}

// CheckKey returns nil if keyPEM is the private key of the authority in certPEM.
func CheckKey(certPEM, keyPEM string) error {
	certificate, err := ParseCertificate(certPEM)
	if err != nil {
		return err
	}
	block, err := onlyBlock(keyPEM)
	if err != nil {
		return fmt.Errorf("parse CA key: %w", err)
	}
	key, err := parseKey(block)
	if err != nil {
		return err
	}
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(certificate.PublicKey) {
		return errors.New("compare CA key: it does not belong to the CA certificate")
	}
	return nil
}

// onlyBlock returns the one PEM block of text. It never quotes the text, which
// may be a secret.
func onlyBlock(text string) (*pem.Block, error) {
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("it is empty")
	}
	block, rest := pem.Decode([]byte(text))
	if block == nil {
		return nil, fmt.Errorf("found %d bytes that are not PEM", len(text))
	}
	if !strings.HasPrefix(strings.TrimSpace(text), "-----BEGIN ") {
		return nil, fmt.Errorf("found text before the PEM block of type %q", block.Type)
	}
	if strings.TrimSpace(string(rest)) != "" {
		return nil, fmt.Errorf("found more than one PEM block, or text after the first, of type %q", block.Type)
	}
	return block, nil
}

// parseKey reads the forms in which openssl and the DBaaS operator write keys.
func parseKey(block *pem.Block) (crypto.Signer, error) {
	var key any
	var err error
	switch block.Type {
	case keyType:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("parse CA key: found a PEM block of type %q", block.Type)
	}
	if err != nil {
		// The cause of a parser may quote what it read.
		return nil, fmt.Errorf("parse CA key: the PEM block of type %q holds no key", block.Type)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("parse CA key: found a %T, which cannot sign", key)
	}
	return signer, nil
}

func encode(blockType string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: blockType, Bytes: der}))
}
