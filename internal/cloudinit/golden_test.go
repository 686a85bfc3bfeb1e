package cloudinit_test

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
)

var update = flag.Bool("update", false, "write the golden files")

// caCert is an authority that nobody has the key of.
const caCert = `-----BEGIN CERTIFICATE-----
MIIBbzCCARWgAwIBAgIQdUVGbmCD6UxZPBEhFRn2kjAKBggqhkjOPQQDAjAWMRQw
-----END CERTIFICATE-----
`

func minimal() cloudinit.Config {
	return cloudinit.Config{
		InstanceID: "5f1c2c1e-0000-4000-8000-00000000d001", Hostname: "pg-orders", EngineVersion: "15",
		Port: 5432, MaxConnections: 50, MasterUsername: "dbadmin", DBName: "orders", DataGiB: 20, CACert: caCert,
	}
}

func full() cloudinit.Config {
	c := minimal()
	c.Parameters = map[string]string{"work_mem": "8MB", "log_line_prefix": hostile, "pg_stat_statements.track": "all"}
	c.Extensions = []string{"pg_stat_statements", "pg_trgm"}
	c.AllowedCIDRs = []string{"10.0.0.0/8", "fd00::/8"}
	c.DNSNames = []string{"*.db.example.test", "orders.example.test"}
	c.SSHPublicKeys = []string{"ssh-ed25519 AAAA someone@example.test"}
	c.PackageSource = cloudinit.PackageSource{APTProxy: "http://[fd00::1]:3142", PGDGMirror: "https://mirror.example.test/pgdg"}
	c.PasswordRotation = 3
	return c
}

func bootstrap() *cloudinit.Bootstrap {
	return &cloudinit.Bootstrap{
		CAKey:    "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
		Verifier: "SCRAM-SHA-256$4096:c2FsdA==$c3RvcmVk:c2VydmVy",
	}
}

// The scripts have files of their own: here is what the values make of the
// rest of the document.
func TestUserDataGolden(t *testing.T) {
	for name, test := range map[string]struct {
		config    cloudinit.Config
		bootstrap *cloudinit.Bootstrap
	}{
		"first-boot": {minimal(), bootstrap()},
		"stays":      {minimal(), nil},
		"full":       {full(), nil},
		"rotation":   {full(), &cloudinit.Bootstrap{Verifier: bootstrap().Verifier}},
		"nobody":     {with(func(c *cloudinit.Config) { c.AllowedCIDRs = []string{} }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := cloudinit.UserData(test.config, test.bootstrap)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".userdata.yaml", withoutScripts(t, string(got)))
		})
	}
}

func TestNetworkDataGolden(t *testing.T) {
	for name, network := range map[string]cloudinit.Network{
		"dhcp":           {MAC: "02:00:00:12:34:56"},
		"static-ipv4":    {MAC: "02:00:00:12:34:56", Static: static("192.0.2.10/24", "192.0.2.1")},
		"static-ipv6":    {MAC: "02:00:00:12:34:56", Static: static("2001:db8::10/64", "2001:db8::1")},
		"gateway-beyond": {MAC: "02:00:00:12:34:56", Static: static("192.0.2.10/32", "198.51.100.1")},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := cloudinit.NetworkData(network)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".network.yaml", string(got))
		})
	}
}

func static(address, gateway string) *cloudinit.Static {
	return &cloudinit.Static{
		Address: netip.MustParsePrefix(address), Gateway: netip.MustParseAddr(gateway),
		Nameservers:   []netip.Addr{netip.MustParseAddr("192.0.2.53"), netip.MustParseAddr("2001:db8::53")},
		SearchDomains: []string{"b.example.test", "a.example.test"},
	}
}

func with(change func(*cloudinit.Config)) cloudinit.Config {
	c := minimal()
	change(&c)
	return c
}

// withoutScripts leaves out what guest/ holds, so that a change of a script
// changes no golden file.
func withoutScripts(t *testing.T, document string) string {
	t.Helper()
	var kept strings.Builder
	skipping, head := false, true
	for line := range strings.Lines(document) {
		if path, ok := strings.CutPrefix(line, "  put /"); ok {
			head = false
			skipping = !strings.HasPrefix(path, "etc/dbaas/config.json ") && !strings.HasPrefix(path, "etc/dbaas/bootstrap.env ") &&
				!strings.HasPrefix(path, "run/dbaas/secret/")
			if skipping {
				kept.WriteString("  … " + line[2:])
			}
		}
		script := head && (strings.HasPrefix(line, "  ") || line == "\n")
		if !skipping && !script {
			kept.WriteString(line)
		}
		if line == "  END_OF_FILE\n" {
			skipping = false
		}
	}
	return kept.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}
