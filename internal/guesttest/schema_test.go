package guesttest

import (
	"net/netip"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
)

// documentIsValid lets the guest's own cloud-init judge the documents: that of
// this instance as it stands, and ones with everything that can be in them.
func (l *life) documentIsValid(t *testing.T) {
	user := l.secret(t, "pg-life-cloudinit", "userdata")
	config, err := cloudinit.ParseUserData(user)
	must(t, err)
	config.Parameters = map[string]string{"log_line_prefix": prefix + "\n\x01END_OF_FILE\n"}
	config.DBName, config.MasterUsername = prefix, prefix
	config.Monitoring = new(cloudinit.Monitoring)
	config.PackageSource = cloudinit.PackageSource{APTProxy: "http://[fd00::1]:3142", PGDGMirror: "https://mirror.example.test/pgdg"}
	full, err := cloudinit.UserData(config, &cloudinit.Bootstrap{
		CAKey: "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", Verifier: "SCRAM-SHA-256$4096:c2FsdA==$c3RvcmVk:c2VydmVy",
	})
	must(t, err)
	for name, document := range map[string][]byte{"this instance's": user, "with everything": full} {
		verdict, ok := l.inside(t, l.name, "cloud-init", "schema", "--config-file", l.put(t, "user-data", document))
		if !ok || !strings.Contains(strings.ToLower(verdict), "valid") || strings.Contains(strings.ToLower(verdict), "invalid") {
			t.Errorf("user data, %s: %s", name, verdict)
		}
	}
	if verdict, ok := l.inside(t, l.name, "cloud-init", "schema", "--config-file", l.put(t, "bad", []byte("#cloud-config\nbootcmd: 7\n"))); ok {
		t.Errorf("the schema accepts anything: %s", verdict)
	}
	for name, network := range map[string]cloudinit.Network{
		"DHCP": {MAC: "02:00:00:12:34:56"},
		"static": {MAC: "02:00:00:12:34:56", Static: &cloudinit.Static{
			Address: netip.MustParsePrefix("2001:db8::10/64"), Gateway: netip.MustParseAddr("2001:db8::1"),
			Nameservers: []netip.Addr{netip.MustParseAddr("192.0.2.53"), netip.MustParseAddr("2001:db8::53")}, SearchDomains: []string{"#a", "'b'", "{c}", "d:e"},
		}},
	} {
		data, err := cloudinit.NetworkData(network)
		must(t, err)
		// Version 2 is netplan's format, and netplan is what reads it in the end.
		l.put(t, "netplan/etc/netplan/50-cloud-init.yaml", []byte("network:\n  "+strings.ReplaceAll(strings.TrimSpace(string(data)), "\n", "\n  ")+"\n"))
		if out, ok := l.inside(t, l.name, "netplan", "generate", "--root-dir", "/run/guesttest/netplan"); !ok {
			t.Errorf("network data, %s: %s", name, out)
		}
	}
}

// put makes a file in the guest.
func (l *life) put(t *testing.T, name string, content []byte) string {
	t.Helper()
	vmi, err := l.vmi(t.Context(), l.name)
	must(t, err)
	place := path.Join("/run/guesttest", name)
	outside := "/proc/" + l.first(t, string(vmi.GetUID())) + "/root" + place
	must(t, os.MkdirAll(path.Dir(outside), 0o700))
	must(t, os.WriteFile(outside, content, 0o600))
	return place
}
