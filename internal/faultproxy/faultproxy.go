// Package faultproxy runs a fault proxy of the lab for one test or measurement,
// which disturbs and records nobody else. See tools/lab/internal/faults for
// what a rule does and what is recorded.
package faultproxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// Proxy is one that runs.
type Proxy struct {
	// Kubeconfig is the file of the lab's tenant behind the proxy.
	Kubeconfig string

	control string
	command *exec.Cmd
	alive   io.Closer
}

// Rule says which requests are disturbed, and how.
type Rule struct {
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

// Request is one line of the record.
type Request struct {
	Index    int       `json:"index"`
	Time     time.Time `json:"time"`
	Method   string    `json:"method"`
	Path     string    `json:"path"`
	Status   int       `json:"status"`
	Upstream int       `json:"upstream"` // what the server answered, 0 if it was not asked
	Fault    string    `json:"fault"`
	Open     bool      `json:"open"`
}

// Start runs a proxy in front of the lab in a folder, by the lab's program, and
// writes the kubeconfig. The proxy ends with Close, or with this process.
func Start(program, dir, kubeconfig string) (*Proxy, error) {
	p := &Proxy{Kubeconfig: kubeconfig, command: exec.Command(program, "proxy", "-dir", dir, "-extra")} //nolint:noctx // it ends with its input
	p.command.Stderr = os.Stderr
	alive, err := p.command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start a fault proxy: %w", err)
	}
	p.alive = alive
	out, err := p.command.StdoutPipe()
	if err == nil {
		err = p.command.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start a fault proxy: %w", err)
	}
	var serves struct{ Ports map[string]int }
	if err := json.NewDecoder(out).Decode(&serves); err != nil {
		return nil, errors.Join(fmt.Errorf("start a fault proxy: %w", err), p.Close())
	}
	p.control = fmt.Sprintf("http://127.0.0.1:%d", serves.Ports["proxy-control"])
	if err := point(filepath.Join(dir, "proxy.kubeconfig"), kubeconfig, serves.Ports["proxy"]); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// point writes a kubeconfig like another one, for this port.
func point(like, kubeconfig string, port int) error {
	config, err := clientcmd.LoadFromFile(like)
	if err != nil {
		return fmt.Errorf("read the fault proxy's kubeconfig: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = fmt.Sprintf("https://127.0.0.1:%d", port)
	}
	return clientcmd.WriteToFile(*config, kubeconfig)
}

// Close ends the proxy.
func (p *Proxy) Close() error { return errors.Join(p.alive.Close(), p.command.Wait()) }

// Inject arms a rule.
func (p *Proxy) Inject(r Rule) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = p.tell(http.MethodPost, "/rules", body)
	return err
}

// Clear removes all rules.
func (p *Proxy) Clear() error { _, err := p.tell(http.MethodDelete, "/rules", nil); return err }

// Reset forgets rules and record.
func (p *Proxy) Reset() error { _, err := p.tell(http.MethodPost, "/reset", nil); return err }

// Mark makes the last answers those that a stale one repeats.
func (p *Proxy) Mark() error { _, err := p.tell(http.MethodPost, "/mark", nil); return err }

// Record is what was asked since Reset.
func (p *Proxy) Record() ([]Request, error) {
	body, err := p.tell(http.MethodGet, "/record", nil)
	if err != nil {
		return nil, err
	}
	var all []Request
	return all, json.Unmarshal(body, &all)
}

func (p *Proxy) tell(method, path string, body []byte) ([]byte, error) {
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
