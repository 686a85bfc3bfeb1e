// Package faulttest disturbs every request of every operation in every way,
// kills the provider at every request, and judges what is left: an operation
// succeeds by itself, or fails with an error that helps and the next one
// converges. Nothing may be lost.
//
// The requests to disturb are not listed anywhere: each operation runs once
// undisturbed through the lab's fault proxy, and what that recorded is
// disturbed, request by request. A new call is covered without anyone
// remembering it.
package faulttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// namespace is where the lab's tenant may have instances.
const namespace = "tenant-acme"

// lab is a running lab, seen by its administrator.
type lab struct {
	dir     string
	dynamic dynamic.Interface
	// metadata reads objects without their contents.
	metadata metadata.Interface
}

// useLab finds the lab that the environment names.
func useLab(t *testing.T) *lab {
	t.Helper()
	dir := os.Getenv("DBAAS_LAB_DIR")
	if dir == "" {
		t.Skip("needs a lab: run `make test-faults`, or `make lab-up` and then DBAAS_LAB_DIR=$PWD/.lab go test ./internal/faulttest")
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	must(t, err)
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{} // of the age of Endpoints, at each look
	dyn, err := dynamic.NewForConfig(config)
	must(t, err)
	meta, err := metadata.NewForConfig(config)
	must(t, err)
	return &lab{dir: dir, dynamic: dyn, metadata: meta}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// proxy is a fault proxy that one worker has for itself, and the kubeconfig of
// the lab's tenant behind it.
type proxy struct {
	control    string
	kubeconfig string
}

// newProxy runs a fault proxy until the test ends.
func (l *lab) newProxy(t *testing.T) *proxy {
	t.Helper()
	program, err := filepath.Abs("../../bin/lab")
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, program, "proxy", "-dir", l.dir, "-extra")
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	t.Cleanup(func() { stop(); _ = command.Wait() }) // it says only that it was stopped
	var serves struct{ Ports map[string]int }
	must(t, json.NewDecoder(out).Decode(&serves))
	config, err := clientcmd.LoadFromFile(filepath.Join(l.dir, "proxy.kubeconfig"))
	must(t, err)
	for _, cluster := range config.Clusters {
		cluster.Server = fmt.Sprintf("https://127.0.0.1:%d", serves.Ports["proxy"])
	}
	p := &proxy{
		control:    fmt.Sprintf("http://127.0.0.1:%d", serves.Ports["proxy-control"]),
		kubeconfig: filepath.Join(t.TempDir(), "proxy.kubeconfig"),
	}
	must(t, clientcmd.WriteToFile(*config, p.kubeconfig))
	return p
}

// rule is one of the proxy's, see tools/lab/internal/faults.
type rule struct {
	Method     string `json:"method,omitempty"`
	Path       string `json:"path,omitempty"`
	Nth        int    `json:"nth,omitempty"`
	Times      int    `json:"times,omitempty"`
	Action     string `json:"action"`
	Effect     bool   `json:"effect,omitempty"`
	Delay      string `json:"delay,omitempty"`
	Status     int    `json:"status,omitempty"`
	RetryAfter int    `json:"retryAfter,omitempty"`
	Events     int    `json:"events,omitempty"`
	Snapshot   string `json:"snapshot,omitempty"`
}

// request is one line of the proxy's record.
type request struct {
	Index    int       `json:"index"`
	Time     time.Time `json:"time"`
	Method   string    `json:"method"`
	Path     string    `json:"path"`
	Status   int       `json:"status"`
	Upstream int       `json:"upstream"` // what the server answered, 0 if it was not asked
	Fault    string    `json:"fault"`
	Open     bool      `json:"open"`
}

func (p *proxy) inject(r rule) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = p.tell(http.MethodPost, "/rules", body)
	return err
}

func (p *proxy) clear() error { _, err := p.tell(http.MethodDelete, "/rules", nil); return err }
func (p *proxy) reset() error { _, err := p.tell(http.MethodPost, "/reset", nil); return err }
func (p *proxy) mark() error  { _, err := p.tell(http.MethodPost, "/mark", nil); return err }

func (p *proxy) record() ([]request, error) {
	body, err := p.tell(http.MethodGet, "/record", nil)
	if err != nil {
		return nil, err
	}
	var all []request
	return all, json.Unmarshal(body, &all)
}

func (p *proxy) tell(method, path string, body []byte) ([]byte, error) {
	// It is on this machine, and has to hear "clear" also when time is over.
	req, err := http.NewRequest(method, p.control+path, bytes.NewReader(body)) //nolint:noctx // see above
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s of the fault proxy: %s: %s", method, path, resp.Status, answer)
	}
	return answer, err
}
