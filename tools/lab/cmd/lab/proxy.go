package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/faults"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/state"
)

// runProxy serves a fault proxy and its control address until ctx ends: the
// lab's own, or on free ports one more, which disturbs and records nobody else.
func runProxy(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("proxy", flag.ContinueOnError)
	dir := flags.String("dir", ".lab", "the lab's folder")
	extra := flags.Bool("extra", false, "serve one more proxy, until standard input ends, on free ports, which are printed in JSON like those of lab.json")
	if err := flags.Parse(args); err != nil {
		return err
	}
	lab, err := state.Dir(*dir).Load()
	if err != nil {
		return err
	}
	transport, err := upstreamTransport(state.Dir(*dir).PKI("ca.crt"))
	if err != nil {
		return err
	}
	cert, err := tls.LoadX509KeyPair(state.Dir(*dir).PKI("proxy.crt"), state.Dir(*dir).PKI("proxy.key"))
	if err != nil {
		return fmt.Errorf("load the proxy's certificate: %w", err)
	}
	upstream := &url.URL{Scheme: "https", Host: loopback(lab.Ports["apiserver"])}
	p := faults.New(faults.Options{Upstream: upstream, Transport: transport})
	front := p.Server(cert)
	control := &http.Server{Handler: p.Control()}
	failed := make(chan error, 2)
	ports := map[string]int{"proxy": 0, "proxy-control": 0}
	for port, serve := range map[string]func(net.Listener) error{
		"proxy":         func(l net.Listener) error { return front.ServeTLS(l, "", "") },
		"proxy-control": control.Serve,
	} {
		if !*extra {
			ports[port] = lab.Ports[port]
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", loopback(ports[port]))
		if err != nil {
			return fmt.Errorf("serve port %q of the lab: %w", port, err)
		}
		ports[port] = l.Addr().(*net.TCPAddr).Port
		go func() { failed <- serve(l) }()
	}
	if err := json.NewEncoder(os.Stdout).Encode(map[string]any{"ports": ports, "upstream": upstream.String()}); err != nil {
		return fmt.Errorf("print the ports: %w", err)
	}
	var left chan struct{} // closed when whoever wanted one more is gone
	if *extra {
		left = make(chan struct{})
		go func() { defer close(left); _, _ = io.Copy(io.Discard, os.Stdin) }()
	}
	select {
	case err = <-failed:
	case <-ctx.Done():
	case <-left:
	}
	// Not Shutdown: watches would keep it from ending.
	return errors.Join(err, front.Close(), control.Close())
}

func upstreamTransport(caFile string) (*http.Transport, error) {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("read the lab's authority: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("read the lab's authority: no certificate in %s", caFile)
	}
	return &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
	}, nil
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
