// Package cloudinit renders what makes a machine the database: the user data
// with the guest's scripts, and the network data. It also reads back what it
// rendered.
package cloudinit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// hashBytes is the part of the SHA-256 that Hash keeps: it tells the
// configurations of one instance apart, and is no protection against forgery.
const hashBytes = 8

// A Config is the configuration that every boot applies. It holds no secret.
type Config struct {
	// InstanceID is a UUID; the data disk's filesystem carries it too.
	InstanceID string `json:"instance_id"`
	// Hostname is the machine's name, and a name in the server certificate.
	Hostname string `json:"hostname"`
	// EngineVersion is PostgreSQL's major version.
	EngineVersion string `json:"engine_version"`
	// Port is where PostgreSQL listens.
	Port int64 `json:"port"`
	// MaxConnections is PostgreSQL's setting of that name.
	MaxConnections int64 `json:"max_connections"`
	// MasterUsername is the role that owns the database.
	MasterUsername string `json:"master_username"`
	// DBName is the database.
	DBName string `json:"db_name"`
	// DataGiB is the size that the data filesystem must have, in GiB. It is not
	// covered by the hash: a disk grows under a running machine.
	DataGiB int64 `json:"data_gib"`
	// CACert is the certificate of the instance's authority, in PEM.
	CACert string `json:"ca_cert"`
	// Parameters are the owner's settings in postgresql.conf.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Extensions is the set of extensions to create in the database.
	Extensions []string `json:"extensions,omitempty"`
	// AllowedCIDRs is the set of networks that may connect. Nil means every
	// network; empty, but not nil, means none.
	AllowedCIDRs []string `json:"allowed_cidrs,omitzero"`
	// DNSNames is the set of further names in the server certificate.
	DNSNames []string `json:"dns_names,omitempty"`
	// SSHPublicKeys is the set of keys for break-glass logins.
	SSHPublicKeys []string `json:"ssh_public_keys,omitempty"`
	// PackageSource is not covered by the hash: a change of it restarts nothing.
	PackageSource PackageSource `json:"package_source,omitzero"`
	// PasswordRotation counts the rotations of the master password.
	PasswordRotation int64 `json:"password_rotation,omitempty"`
	// Monitoring is nil for a machine without a metrics exporter.
	Monitoring *Monitoring `json:"monitoring,omitempty"`
}

// Monitoring says who may read the machine's metrics, on port 9187.
type Monitoring struct {
	// AllowedCIDRs is the set of networks that may. Nil means every network;
	// empty, but not nil, means none.
	AllowedCIDRs []string `json:"allowed_cidrs,omitzero"`

	// The guest has no use for the following; they stand here so that they are
	// read with the rest, and are not covered by the hash.

	// ScrapeInterval is how often Prometheus reads, as Prometheus writes durations.
	ScrapeInterval string `json:"scrape_interval,omitempty"`
	// GrafanaBaseURL is where Grafana is, or empty.
	GrafanaBaseURL string `json:"grafana_base_url,omitempty"`
}

// A PackageSource says where a machine without Internet finds packages.
type PackageSource struct {
	// APTProxy is the URL of an HTTP proxy for apt, or empty.
	APTProxy string `json:"apt_proxy,omitempty"`
	// PGDGMirror is the URL of a mirror of the PostgreSQL project's packages, or
	// empty for the project's own.
	PGDGMirror string `json:"pgdg_mirror,omitempty"`
}

// A Bootstrap is the material of the first boot, or, with the Verifier alone,
// of a rotation of the password. It is taken out of the document once applied.
type Bootstrap struct {
	// CAKey is the private key of the instance's authority, in PEM.
	CAKey string
	// Verifier is the SCRAM verifier of the master password.
	Verifier string
}

// everyNetwork is what nil AllowedCIDRs mean.
func everyNetwork() []string { return []string{"0.0.0.0/0", "::/0"} }

// Hash names the values that a boot applies. Two configurations that a machine
// cannot tell apart have one hash; the scripts, the bootstrap material, the
// package source, the disk's size and what only the readers of metrics need are
// not in it, so none of them makes a restart.
func (c Config) Hash() string {
	c = c.canonical()
	c.PackageSource, c.DataGiB = PackageSource{}, 0
	if slices.Equal(c.AllowedCIDRs, everyNetwork()) {
		c.AllowedCIDRs = nil
	}
	if c.Monitoring != nil {
		readers := c.Monitoring.AllowedCIDRs
		if slices.Equal(readers, everyNetwork()) {
			readers = nil
		}
		c.Monitoring = &Monitoring{AllowedCIDRs: readers}
	}
	// A Config marshals always: it holds strings and numbers only. New fields
	// must be omitted while unset, or every instance would want a restart.
	text, _ := json.Marshal(c)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:hashBytes])
}

// canonical returns c with its sets sorted and without doubles, so that order
// and the difference between absent and empty do not matter.
func (c Config) canonical() Config {
	c.Extensions = set(c.Extensions)
	c.DNSNames = set(c.DNSNames)
	c.SSHPublicKeys = set(c.SSHPublicKeys)
	c.AllowedCIDRs = networks(c.AllowedCIDRs)
	if c.Monitoring != nil {
		own := *c.Monitoring
		own.AllowedCIDRs = networks(own.AllowedCIDRs)
		c.Monitoring = &own
	}
	if len(c.Parameters) == 0 {
		c.Parameters = nil
	}
	c.CACert = strings.TrimSpace(c.CACert) + "\n"
	return c
}

// set returns the values sorted and without doubles, nil if there are none.
func set(values []string) []string {
	if len(values) == 0 {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(values)))
}

// networks is set for networks, where nil and empty differ.
func networks(values []string) []string {
	if values == nil {
		return nil
	}
	return append([]string{}, set(values)...)
}

// document is what the machine-readable file in the user data holds.
type document struct {
	// Format is raised when an older provider would misread the rest.
	Format int    `json:"format"`
	Hash   string `json:"hash"`
	Config Config `json:"config"`
}

const format = 1

func marshalDocument(c Config) (string, error) {
	text, err := json.MarshalIndent(document{Format: format, Hash: c.Hash(), Config: c}, "", "  ")
	if err != nil {
		return "", fmt.Errorf("marshal configuration: %w", err)
	}
	return asciiJSON(text) + "\n", nil
}

func unmarshalDocument(text string) (Config, error) {
	var found struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		return Config{}, fmt.Errorf("parse configuration: %w", err)
	}
	if found.Format != format {
		return Config{}, fmt.Errorf("parse configuration: it has format %d, this provider knows %d; a newer provider has written it", found.Format, format)
	}
	var d document
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return Config{}, fmt.Errorf("parse configuration: %w", err)
	}
	return d.Config, nil
}

// asciiJSON escapes what is not ASCII, which JSON can always do. The document
// then has no character that YAML or a shell treats in its own way.
func asciiJSON(text []byte) string {
	var b strings.Builder
	for _, r := range string(text) {
		switch {
		case r < 0x7f:
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		}
	}
	return b.String()
}
