package cluster_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// An apiServer is a TLS server that lets in who shows the right credentials,
// and answers every GET with an object.
type apiServer struct {
	*httptest.Server
	// CA is the server's authority in PEM; Certificate and Key a client's.
	CA, Certificate, Key string

	mu     sync.Mutex
	agents []string
	paths  []string
}

const goodToken = "good-token-6c1f"

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{}
	s.Certificate, s.Key = selfSigned(t, "alice")
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM([]byte(s.Certificate))
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.answer))
	s.TLS = &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: clients, MinVersion: tls.VersionTLS12}
	s.EnableHTTP2 = true
	// What clients do wrong on purpose is not worth a line in the test's log.
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	s.CA = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Server.Certificate().Raw}))
	return s
}

func (s *apiServer) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.agents = append(s.agents, r.UserAgent())
	s.paths = append(s.paths, r.URL.Path)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Warning", `299 - "printed warnings end up in Terraform's output"`)
	known := r.Header.Get("Authorization") == "Bearer "+goodToken ||
		len(r.TLS.PeerCertificates) > 0 && r.Header.Get("Authorization") == ""
	switch {
	case !known:
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`))
	case strings.HasSuffix(r.URL.Path, "/absent"):
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"not found"}`))
	case strings.Contains(r.URL.Path, "virtualmachineimages"):
		_, _ = w.Write([]byte(`{"kind":"VirtualMachineImage","apiVersion":"harvesterhci.io/v1beta1","metadata":{"name":"debian-12"},"status":{"storageClassName":"lh-1"}}`))
	case strings.Contains(r.URL.Path, "virtualmachines"):
		_, _ = w.Write([]byte(`{"kind":"VirtualMachine","apiVersion":"kubevirt.io/v1","metadata":{"name":"pg-orders"}}`))
	default:
		_, _ = w.Write([]byte(`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x"}}`))
	}
}

func (s *apiServer) requests() (paths, agents []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.paths...), append([]string(nil), s.agents...)
}

func selfSigned(t *testing.T, name string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	var cert, keyPEM bytes.Buffer
	_ = pem.Encode(&cert, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	_ = pem.Encode(&keyPEM, &pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	return cert.String(), keyPEM.String()
}
