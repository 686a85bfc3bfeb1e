package cloudinit

import (
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// validate refuses values that would not arrive in the guest as what they are.
// The provider's own checks come earlier and say more; these are the last ones
// before a machine runs with them.
func (c Config) validate() error {
	text := map[string]string{"db_name": c.DBName, "master_username": c.MasterUsername}
	for name, value := range c.Parameters {
		if err := CheckParameterName(name); err != nil {
			return fmt.Errorf("parameters: %w", err)
		}
		text["parameters: "+name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(text)) {
		if strings.ContainsRune(text[name], 0) || !utf8.ValidString(text[name]) {
			return fmt.Errorf("%s: the value holds a NUL or is not UTF-8", name)
		}
	}
	if c.Port < 1 || c.Port > 65535 {
		return fmt.Errorf("port: %d is not a port", c.Port)
	}
	if c.MaxConnections < 1 || c.DataGiB < 1 {
		return errors.New("max_connections and data_gib must be at least 1")
	}
	if c.DBName == "" || c.MasterUsername == "" {
		return errors.New("db_name and master_username must not be empty")
	}
	return errors.Join(c.validateWords(), c.validateNetwork(), c.validateSource(), validatePEM("ca_cert", c.CACert))
}

// CheckParameterName refuses what cannot be the name of a setting of PostgreSQL.
func CheckParameterName(name string) error {
	if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$`).MatchString(name) {
		return fmt.Errorf("%q is not the name of a setting, such as work_mem or pg_stat_statements.max", name)
	}
	return nil
}

// CheckSource refuses what cannot be the URL of a proxy or mirror of packages.
func CheckSource(value string) error {
	// What remains can stand in apt's files as it is.
	if strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"'\\;{}", r) }) {
		return fmt.Errorf("%q holds a character that apt's files cannot; write it percent-encoded", value)
	}
	parsed, err := url.Parse(value)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return fmt.Errorf("%q is not an http or https URL, such as http://proxy.example.com:3142", value)
	}
	return nil
}

// validateWords checks what the guest splits at blanks or uses in paths.
func (c Config) validateWords() error {
	domain := regexp.MustCompile(`^(\*\.)?[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$`)
	for _, check := range []struct {
		field   string
		pattern *regexp.Regexp
		values  []string
	}{
		{"instance_id", regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`), []string{c.InstanceID}},
		{"engine_version", regexp.MustCompile(`^[0-9]{2}$`), []string{c.EngineVersion}},
		{"hostname", domain, []string{c.Hostname}},
		{"dns_names", domain, c.DNSNames},
		{"extensions", regexp.MustCompile(`^[a-z][a-z0-9_-]*$`), c.Extensions},
		{"ssh_public_keys", regexp.MustCompile(`^[!-~]+( [!-~]+)*$`), c.SSHPublicKeys},
	} {
		for _, value := range check.values {
			if !check.pattern.MatchString(value) {
				return fmt.Errorf("%s: %q is malformed", check.field, value)
			}
		}
	}
	return nil
}

func (c Config) validateNetwork() error {
	lists := map[string][]string{"allowed_cidrs": c.AllowedCIDRs}
	if c.Monitoring != nil {
		lists["monitoring.allowed_cidrs"] = c.Monitoring.AllowedCIDRs
	}
	for _, field := range slices.Sorted(maps.Keys(lists)) {
		for _, value := range lists[field] {
			if _, err := netip.ParsePrefix(value); err != nil {
				return fmt.Errorf("%s: %w", field, err)
			}
		}
	}
	return nil
}

func (c Config) validateSource() error {
	for _, source := range [][2]string{{"apt_proxy", c.PackageSource.APTProxy}, {"pgdg_mirror", c.PackageSource.PGDGMirror}} {
		field, value := source[0], source[1]
		if value == "" {
			continue
		}
		if err := CheckSource(value); err != nil {
			return fmt.Errorf("package_source.%s: %w", field, err)
		}
	}
	return nil
}

// validatePEM never quotes the text, which may be a secret.
func validatePEM(field, text string) error {
	block, rest := pem.Decode([]byte(text))
	if block == nil || strings.TrimSpace(string(rest)) != "" || !strings.HasPrefix(strings.TrimSpace(text), "-----BEGIN ") {
		return fmt.Errorf("%s: not one PEM block", field)
	}
	return nil
}

func (b Bootstrap) validate() error {
	if b.CAKey != "" {
		if err := validatePEM("ca_key", b.CAKey); err != nil {
			return err
		}
	}
	if b.CAKey != "" && b.Verifier == "" {
		return errors.New("verifier: a first boot needs one")
	}
	if b.Verifier != "" && !regexp.MustCompile(`^SCRAM-SHA-256\$[0-9]+:[A-Za-z0-9+/=]+\$[A-Za-z0-9+/=]+:[A-Za-z0-9+/=]+$`).MatchString(b.Verifier) {
		return errors.New("verifier: not a SCRAM-SHA-256 verifier")
	}
	return nil
}
