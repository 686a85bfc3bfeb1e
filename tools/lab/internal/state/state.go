// Package state is what a lab's folder holds: where everything is, and the
// record that lets any later command find the running lab again.
package state

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Dir is the folder of one lab (LAB_DIR, by default .lab in the repository).
type Dir string

// Lab is the record of a running lab, kept in lab.json.
type Lab struct {
	// Guest is sim, container or vm.
	Guest string `json:"guest"`
	// Network numbers the lab's subnet, 198.18.NETWORK.0/24 (RFC 2544), and its
	// links and namespaces, dbaaslabNETWORK…; no two running labs share it.
	Network int `json:"network"`
	// Ports by use: etcd, etcd-peer, apiserver, virt-api, virt-controller,
	// kcm, webhook, kubelet, images, packages, proxy, proxy-control.
	Ports map[string]int `json:"ports"`
}

// Path joins names to the lab's folder.
func (d Dir) Path(names ...string) string {
	return filepath.Join(append([]string{string(d)}, names...)...)
}

// Kubeconfig is the administrator's, straight to the API server.
func (d Dir) Kubeconfig() string { return d.Path("kubeconfig") }

// TenantKubeconfig is that of a tenant who has the documented Roles only.
func (d Dir) TenantKubeconfig() string { return d.Path("tenant.kubeconfig") }

// ProxyKubeconfig is the tenant's through the fault proxy.
func (d Dir) ProxyKubeconfig() string { return d.Path("proxy.kubeconfig") }

// Log is where a piece logs.
func (d Dir) Log(piece string) string { return d.Path("log", piece+".log") }

// PKI is a key or certificate.
func (d Dir) PKI(name string) string { return d.Path("pki", name) }

// Load reads lab.json.
func (d Dir) Load() (*Lab, error) {
	b, err := os.ReadFile(d.Path("lab.json"))
	if err != nil {
		return nil, fmt.Errorf("read the lab's record: %w", err)
	}
	l := new(Lab)
	if err := json.Unmarshal(b, l); err != nil {
		return nil, fmt.Errorf("parse %s: %w", d.Path("lab.json"), err)
	}
	return l, nil
}

// Save writes lab.json.
func (d Dir) Save(l *Lab) error {
	b, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(string(d), 0o755); err != nil {
		return err
	}
	return os.WriteFile(d.Path("lab.json"), append(b, '\n'), 0o644)
}
