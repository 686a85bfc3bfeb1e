package faults

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
)

type connKey struct{}

// ConnContext is for http.Server.ConnContext: it lets a handler reach the
// connection, which net/http hides under HTTP/2.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// Server returns a server for the proxy that speaks TLS with HTTP/1.1 and
// HTTP/2, as an API server does. Start it with ServeTLS(listener, "", "").
func (p *Proxy) Server(cert tls.Certificate) *http.Server {
	return &http.Server{
		Handler:     p,
		ConnContext: ConnContext,
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
	}
}

// cut resets the TCP connection that a request came in on. Aborting the
// handler alone would end only the stream under HTTP/2, which is something
// that a client retries more readily than a connection that died.
func cut(ctx context.Context) {
	conn, ok := ctx.Value(connKey{}).(net.Conn)
	if !ok {
		return
	}
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn() // closing the TLS layer would say goodbye first
	}
	if t, ok := conn.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // RST instead of FIN
	}
	_ = conn.Close()
}
