package cloudinit_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
)

// The value stands in running clusters: a provider that computes another one
// would restart every instance.
func TestHashIsThatOfEarlierProviders(t *testing.T) {
	got := map[string]string{"minimal": minimal().Hash(), "full": full().Hash()}
	want := map[string]string{"minimal": "c8e895bd5b2111bf", "full": "d0ac8c0e387a4d99"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestHashIgnoresWhatABootDoesNotApply(t *testing.T) {
	for name, change := range map[string]func(*cloudinit.Config){
		"size of the disk":        func(c *cloudinit.Config) { c.DataGiB++ },
		"package source":          func(c *cloudinit.Config) { c.PackageSource = cloudinit.PackageSource{} },
		"order of extensions":     func(c *cloudinit.Config) { c.Extensions = []string{"pg_trgm", "pg_stat_statements"} },
		"a name twice":            func(c *cloudinit.Config) { c.DNSNames = append(c.DNSNames, c.DNSNames[0]) },
		"order of networks":       func(c *cloudinit.Config) { c.AllowedCIDRs = []string{"fd00::/8", "10.0.0.0/8"} },
		"newline at the CA's end": func(c *cloudinit.Config) { c.CACert = strings.TrimSpace(c.CACert) },
	} {
		t.Run(name, func(t *testing.T) {
			c := full()
			change(&c)
			if c.Hash() != full().Hash() {
				t.Error("the hash has changed")
			}
		})
	}
}

func TestHashIgnoresWhatOnlyTheReadersOfMetricsNeed(t *testing.T) {
	c := minimal()
	c.Monitoring = new(cloudinit.Monitoring)
	before := c.Hash()
	c.Monitoring = &cloudinit.Monitoring{ScrapeInterval: "1m", GrafanaBaseURL: "https://grafana.example.test", AllowedCIDRs: []string{"::/0", "0.0.0.0/0"}}
	if c.Hash() != before {
		t.Error("the hash has changed")
	}
	if c.Monitoring.ScrapeInterval != "1m" {
		t.Error("computing the hash changed the configuration")
	}
}

func TestHashTakesAbsentAndEmptyAndDefaultForOne(t *testing.T) {
	c := minimal()
	c.Parameters = map[string]string{}
	c.Extensions = []string{}
	c.DNSNames = []string{}
	c.SSHPublicKeys = []string{}
	c.AllowedCIDRs = []string{"::/0", "0.0.0.0/0"}
	if c.Hash() != minimal().Hash() {
		t.Error("the hash has changed")
	}
}

func TestHashFollowsEveryValueThatABootApplies(t *testing.T) {
	seen := map[string]string{full().Hash(): "the original"}
	for name, change := range map[string]func(*cloudinit.Config){
		"instance id":      func(c *cloudinit.Config) { c.InstanceID = "6f1c2c1e-0000-4000-8000-00000000d001" },
		"host name":        func(c *cloudinit.Config) { c.Hostname = "pg-other" },
		"engine version":   func(c *cloudinit.Config) { c.EngineVersion = "16" },
		"port":             func(c *cloudinit.Config) { c.Port++ },
		"connections":      func(c *cloudinit.Config) { c.MaxConnections++ },
		"user name":        func(c *cloudinit.Config) { c.MasterUsername = "other" },
		"database":         func(c *cloudinit.Config) { c.DBName = "other" },
		"CA":               func(c *cloudinit.Config) { c.CACert = strings.Replace(c.CACert, "MIIB", "MIIC", 1) },
		"a parameter":      func(c *cloudinit.Config) { c.Parameters["work_mem"] = "9MB" },
		"one parameter":    func(c *cloudinit.Config) { delete(c.Parameters, "work_mem") },
		"an extension":     func(c *cloudinit.Config) { c.Extensions = c.Extensions[:1] },
		"a network":        func(c *cloudinit.Config) { c.AllowedCIDRs = c.AllowedCIDRs[:1] },
		"no network":       func(c *cloudinit.Config) { c.AllowedCIDRs = []string{} },
		"every network":    func(c *cloudinit.Config) { c.AllowedCIDRs = nil },
		"a name":           func(c *cloudinit.Config) { c.DNSNames = c.DNSNames[:1] },
		"a key":            func(c *cloudinit.Config) { c.SSHPublicKeys = nil },
		"another rotation": func(c *cloudinit.Config) { c.PasswordRotation++ },
		"monitoring":       func(c *cloudinit.Config) { c.Monitoring = new(cloudinit.Monitoring) },
		"its networks":     func(c *cloudinit.Config) { c.Monitoring = &cloudinit.Monitoring{AllowedCIDRs: c.AllowedCIDRs} },
	} {
		c := full()
		change(&c)
		if before, taken := seen[c.Hash()]; taken {
			t.Errorf("%s: the hash is that of %s", name, before)
		}
		seen[c.Hash()] = name
	}
}

func TestHashLeavesTheConfigurationAlone(t *testing.T) {
	c := full()
	c.Extensions = []string{"pg_trgm", "btree_gin"}
	want := append([]string{}, c.Extensions...)
	parameters := maps.Clone(c.Parameters)
	c.Hash()
	if diff := cmp.Diff(want, c.Extensions); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(parameters, c.Parameters); diff != "" {
		t.Error(diff)
	}
}
