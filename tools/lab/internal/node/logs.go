package node

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// consoleContainer is the launcher's container that prints the serial console.
const consoleContainer = "guest-console-log"

// serveKubelet answers the API server's request for the logs of a container.
func serveKubelet(ctx context.Context, o Options, c *cluster, ms *machines) error {
	ca, err := os.ReadFile(o.Dir.PKI("ca.crt"))
	if err != nil {
		return fmt.Errorf("read the lab's CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return errors.New("parse the lab's CA: no certificate")
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		serveLog(w, r, c, ms)
	})
	s := &http.Server{
		Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(o.Lab.Ports["kubelet"])), Handler: mux, ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12},
	}
	return serve(ctx, s, func() error { return s.ListenAndServeTLS(o.Dir.PKI("kubelet.crt"), o.Dir.PKI("kubelet.key")) })
}

func serveLog(w http.ResponseWriter, r *http.Request, c *cluster, ms *machines) {
	p := new(corev1.Pod)
	if err := c.Get(r.Context(), types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("pod")}, p); err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	if !hasContainer(p, r.PathValue("container")) {
		http.Error(w, fmt.Sprintf("container %q not found in pod %q", r.PathValue("container"), p.Name), http.StatusNotFound)
		return
	}
	m := ms.get(types.UID(p.Labels[kubevirtv1.CreatedByLabel]))
	if m == nil || r.PathValue("container") != consoleContainer {
		return // nothing was printed
	}
	f, err := os.Open(m.ConsoleLog())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer f.Close()
	tail, err := strconv.Atoi(r.URL.Query().Get("tailLines"))
	if err != nil {
		tail = -1
	}
	if err := copyTail(w, f, tail); err != nil || r.URL.Query().Get("follow") != "true" {
		return
	}
	follow(r.Context(), w, f, func() bool { return m.exit() != nil })
}

func hasContainer(p *corev1.Pod, name string) bool {
	is := func(c corev1.Container) bool { return c.Name == name }
	return slices.ContainsFunc(p.Spec.Containers, is) || slices.ContainsFunc(p.Spec.InitContainers, is)
}

// copyTail copies the last lines of a file, or all of it if lines is negative.
func copyTail(w io.Writer, r io.Reader, lines int) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	all := slices.Collect(bytes.Lines(data))
	if lines >= 0 && lines < len(all) {
		all = all[len(all)-lines:]
	}
	_, err = w.Write(bytes.Join(all, nil))
	return err
}

// follow copies what is appended to the file until the machine has ended or the
// client is gone.
func follow(ctx context.Context, w http.ResponseWriter, f *os.File, ended func() bool) {
	out := http.NewResponseController(w)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		last := ended()
		if n, err := io.Copy(w, f); err != nil || n > 0 && out.Flush() != nil {
			return
		}
		if last {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
