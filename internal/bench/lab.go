package main

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
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wso2/terraform-provider-dbaas/internal/class"
	"github.com/wso2/terraform-provider-dbaas/internal/cluster"
	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

const namespace = "tenant-acme"

// lab is a running lab.
type lab struct {
	dir   string
	admin dynamic.Interface
}

func openLab(dir string) (*lab, error) {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		return nil, fmt.Errorf("open the lab (make lab-up LAB_DIR=%s): %w", dir, err)
	}
	config.QPS = -1
	admin, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("open the lab: %w", err)
	}
	return &lab{dir: dir, admin: admin}, nil
}

// proxy is a fault proxy: here it delays and records.
type proxy struct {
	kubeconfig string // the tenant's
	config     *rest.Config
	control    string
	stop       func()
}

// request is a line of its record.
type request struct {
	Method string `json:"method"`
	Path   string `json:"path"`
}

func (b *bench) startProxy(ctx context.Context, name string, delay time.Duration) (*proxy, error) {
	ctx, cancel := context.WithCancel(ctx)
	command := exec.CommandContext(ctx, "bin/lab", "proxy", "-dir", b.lab.dir, "-extra")
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	var serves struct{ Ports map[string]int }
	if err == nil {
		err = json.NewDecoder(out).Decode(&serves)
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("start a fault proxy: %w", err)
	}
	p := &proxy{
		kubeconfig: filepath.Join(b.dir, name+".kubeconfig"),
		control:    fmt.Sprintf("http://127.0.0.1:%d", serves.Ports["proxy-control"]),
		stop:       func() { cancel(); _ = command.Wait() }, // it says only that it was stopped
	}
	if err := p.write(filepath.Join(b.lab.dir, "proxy.kubeconfig"), serves.Ports["proxy"]); err != nil {
		p.stop()
		return nil, err
	}
	if err := p.reset(ctx, delay); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

func (p *proxy) write(template string, port int) error {
	config, err := clientcmd.LoadFromFile(template)
	if err != nil {
		return fmt.Errorf("read the proxy's kubeconfig: %w", err)
	}
	for _, c := range config.Clusters {
		c.Server = fmt.Sprintf("https://127.0.0.1:%d", port)
	}
	if err := clientcmd.WriteToFile(*config, p.kubeconfig); err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}
	p.config, err = clientcmd.BuildConfigFromFlags("", p.kubeconfig)
	return err
}

// reset forgets the record; from now on each request takes so much longer.
func (p *proxy) reset(ctx context.Context, delay time.Duration) error {
	if _, err := p.tell(ctx, http.MethodPost, "/reset", nil); err != nil || delay == 0 {
		return err
	}
	rule, err := json.Marshal(map[string]any{"action": "delay", "delay": delay.String(), "times": -1})
	if err != nil {
		return err
	}
	_, err = p.tell(ctx, http.MethodPost, "/rules", rule)
	return err
}

func (p *proxy) record(ctx context.Context) ([]request, error) {
	text, err := p.tell(ctx, http.MethodGet, "/record", nil)
	if err != nil {
		return nil, err
	}
	var all []request
	return all, json.Unmarshal(text, &all)
}

func (p *proxy) tell(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.control+path, bytes.NewReader(body))
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
		err = fmt.Errorf("%s: %s", resp.Status, answer)
	}
	return answer, err
}

// store is what the provider uses.
func (p *proxy) store() (*instance.Store, error) {
	client, err := cluster.New(cluster.Config{Paths: []string{p.kubeconfig}}, func(string) string { return "" })
	if err != nil {
		return nil, err
	}
	return instance.New(client, instance.Options{}), nil
}

// spec is the smallest instance.
func spec(name string) instance.Spec {
	return instance.Spec{
		Namespace: namespace, Name: name, ClassName: "db.t3.micro", Class: class.Default()["db.t3.micro"],
		StorageGiB: 1, NetworkRef: "default/vm-net-100", EngineVersion: "15", DBName: strings.ReplaceAll(name, "-", "_"),
		MasterUsername: "dbadmin", Port: 5432, OSImage: "default/debian-12", StorageType: "longhorn", Running: true,
		Master: instance.Master{Mode: instance.PasswordGenerated},
	}
}
