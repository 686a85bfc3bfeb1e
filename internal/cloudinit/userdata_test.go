package cloudinit_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
)

// hostile is a value that must arrive as itself through YAML, a here-document,
// a shell and postgresql.conf.
const hostile = "%m it's \"q\" \\back $(touch pwned) `id` ${HOME} #c: é中😀\u0085\u2028\ttab\x01\x7f\nEND_OF_FILE\nput /etc/x 0644 <<'END_OF_FILE'\n\r end "

func TestParseUserDataIsExact(t *testing.T) {
	for name, config := range map[string]cloudinit.Config{
		"minimal": minimal(), "full": full(),
		"nobody":        with(func(c *cloudinit.Config) { c.AllowedCIDRs = []string{} }),
		"everybody":     with(func(c *cloudinit.Config) { c.AllowedCIDRs = []string{"0.0.0.0/0", "::/0"} }),
		"hostile names": with(func(c *cloudinit.Config) { c.MasterUsername, c.DBName = hostile, hostile }),
		"monitored":     with(func(c *cloudinit.Config) { c.Monitoring = new(cloudinit.Monitoring) }),
		"monitored by nobody": with(func(c *cloudinit.Config) {
			c.Monitoring = &cloudinit.Monitoring{AllowedCIDRs: []string{}, ScrapeInterval: "1m", GrafanaBaseURL: "https://grafana.example.test/a?b"}
		}),
	} {
		for kind, material := range map[string]*cloudinit.Bootstrap{"first boot": bootstrap(), "stays": nil} {
			t.Run(name+", "+kind, func(t *testing.T) {
				document, err := cloudinit.UserData(config, material)
				if err != nil {
					t.Fatal(err)
				}
				got, err := cloudinit.ParseUserData(document)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(config, got); diff != "" {
					t.Error(diff)
				}
				if cloudinit.HasBootstrap(document) != (material != nil) {
					t.Error("HasBootstrap is wrong")
				}
			})
		}
	}
}

func TestUserDataIsPrintableASCII(t *testing.T) {
	document, err := cloudinit.UserData(with(func(c *cloudinit.Config) { c.MasterUsername = hostile; c.Parameters = map[string]string{"a": hostile} }), bootstrap())
	if err != nil {
		t.Fatal(err)
	}
	if i := strings.IndexFunc(string(document), func(r rune) bool { return r > '~' || r < ' ' && r != '\n' }); i >= 0 {
		t.Errorf("byte %#x at %d", document[i], i)
	}
}

func TestUserDataIsOneForOneConfiguration(t *testing.T) {
	one, err := cloudinit.UserData(full(), bootstrap())
	if err != nil {
		t.Fatal(err)
	}
	other := full()
	other.Extensions = []string{"pg_trgm", "pg_stat_statements", "pg_trgm"}
	two, err := cloudinit.UserData(other, bootstrap())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(one), string(two)); diff != "" {
		t.Error(diff)
	}
}

func TestTheDocumentThatStaysDiffersInTheSecretsOnly(t *testing.T) {
	first, err := cloudinit.UserData(full(), bootstrap())
	if err != nil {
		t.Fatal(err)
	}
	stays, err := cloudinit.UserData(full(), nil)
	if err != nil {
		t.Fatal(err)
	}
	begin := strings.Index(string(first), "  put /run/dbaas/secret/")
	end := strings.LastIndex(string(first), "  start\n")
	if begin < 0 || end < begin {
		t.Fatal("the first document has no secrets where they are expected")
	}
	if diff := cmp.Diff(string(stays), string(first[:begin])+string(first[end:])); diff != "" {
		t.Error(diff)
	}
	for _, secret := range []string{"PRIVATE KEY", "SCRAM-SHA-256$"} {
		if strings.Contains(string(stays), secret) {
			t.Errorf("the document that stays holds %s", secret)
		}
	}
}

func TestUserDataRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*cloudinit.Config)
		want   string
	}{
		"a bad instance id":      {func(c *cloudinit.Config) { c.InstanceID = "x" }, "instance_id"},
		"a bad version":          {func(c *cloudinit.Config) { c.EngineVersion = "15; id" }, "engine_version"},
		"a bad host name":        {func(c *cloudinit.Config) { c.Hostname = "a b" }, "hostname"},
		"a bad name":             {func(c *cloudinit.Config) { c.DNSNames = []string{"x,DNS:y"} }, "dns_names"},
		"a bad extension":        {func(c *cloudinit.Config) { c.Extensions = []string{"x y"} }, "extensions"},
		"a bad network":          {func(c *cloudinit.Config) { c.AllowedCIDRs = []string{"10.0.0.0"} }, "allowed_cidrs"},
		"a key of two lines":     {func(c *cloudinit.Config) { c.SSHPublicKeys = []string{"a\nb"} }, "ssh_public_keys"},
		"a bad parameter's name": {func(c *cloudinit.Config) { c.Parameters = map[string]string{"a b": ""} }, "parameters"},
		"a NUL":                  {func(c *cloudinit.Config) { c.Parameters = map[string]string{"a": "\x00"} }, "NUL"},
		"a value not UTF-8":      {func(c *cloudinit.Config) { c.DBName = "\xff" }, "db_name"},
		"no database":            {func(c *cloudinit.Config) { c.DBName = "" }, "db_name"},
		"no port":                {func(c *cloudinit.Config) { c.Port = 0 }, "port"},
		"no storage":             {func(c *cloudinit.Config) { c.DataGiB = 0 }, "data_gib"},
		"no CA":                  {func(c *cloudinit.Config) { c.CACert = "" }, "ca_cert"},
		"two CAs":                {func(c *cloudinit.Config) { c.CACert += caCert }, "ca_cert"},
		"a proxy with a quote":   {func(c *cloudinit.Config) { c.PackageSource.APTProxy = `http://x";` }, "apt_proxy"},
		"a mirror that is none":  {func(c *cloudinit.Config) { c.PackageSource.PGDGMirror = "mirror" }, "pgdg_mirror"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := cloudinit.UserData(with(test.change), bootstrap())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestUserDataRefusesBadMaterialWithoutQuotingIt(t *testing.T) {
	const secret = "hunter2"
	for name, material := range map[string]*cloudinit.Bootstrap{
		"a key that is none":      {CAKey: secret, Verifier: bootstrap().Verifier},
		"a password":              {CAKey: bootstrap().CAKey, Verifier: secret},
		"a key without verifier":  {CAKey: bootstrap().CAKey},
		"a verifier of two lines": {Verifier: bootstrap().Verifier + "\n" + secret},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := cloudinit.UserData(minimal(), material)
			if err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("got error %v", err)
			}
		})
	}
}

func TestParseUserDataRefusesForeignDocuments(t *testing.T) {
	own, err := cloudinit.UserData(minimal(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ document, want string }{
		"nothing":            {"", "not a #cloud-config"},
		"a script":           {"#!/bin/sh\n", "not a #cloud-config"},
		"another's":          {"#cloud-config\npackages: [postgresql]\n", "has not made it"},
		"another's bootcmd":  {"#cloud-config\nbootcmd: ['echo']\n", "has not made it"},
		"a newer provider's": {strings.Replace(string(own), `"format": 1`, `"format": 2`, 1), "newer provider"},
		"half of one":        {strings.ReplaceAll(string(own), "END_OF_FILE\n", "\n"), "has no end"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := cloudinit.ParseUserData([]byte(test.document))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestADamagedDocumentStillHasItsBootstrapMaterial(t *testing.T) {
	for kind, material := range map[string]*cloudinit.Bootstrap{"first boot": bootstrap(), "stays": nil} {
		document := render(t, minimal(), material)
		damaged := strings.Replace(string(document), "END_OF_FILE\n  start\n", "\n", 1)
		if _, err := cloudinit.ParseUserData([]byte(damaged)); err == nil {
			t.Fatal("the damage was not seen")
		}
		if got := cloudinit.HasBootstrap([]byte(damaged)); got != (material != nil) {
			t.Errorf("%s: got %t", kind, got)
		}
	}
}
