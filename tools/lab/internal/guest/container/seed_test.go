package container

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"sigs.k8s.io/yaml"
)

func TestTranslateMatchesCardsByName(t *testing.T) {
	nics := []guest.NIC{{MAC: "52:54:00:00:00:01"}, {MAC: "52:54:00:00:00:02"}}
	for _, c := range []struct{ name, data, want string }{
		{
			"by address, whatever its case",
			`{version: 2, ethernets: {a: {match: {macaddress: "52:54:00:00:00:02"}, set-name: data, dhcp4: true}}}`,
			`{version: 2, ethernets: {a: {match: {name: enp2s0}, dhcp4: true}}}`,
		},
		{
			"below the word network",
			`{network: {version: 2, ethernets: {a: {match: {macaddress: "52:54:00:00:00:01"}}}}}`,
			`{network: {version: 2, ethernets: {a: {match: {name: enp1s0}}}}}`,
		},
		{
			"a card that is not there",
			`{version: 2, ethernets: {a: {match: {macaddress: "52:54:00:00:00:09"}}}}`,
			`{version: 2, ethernets: {a: {match: {macaddress: "52:54:00:00:00:09"}}}}`,
		},
		{"nothing, which is DHCP on the first card", "\n", `{version: 2, ethernets: {enp1s0: {dhcp4: true}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := translate([]byte(c.data), nics)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parse(t, []byte(c.want)), parse(t, got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTranslateRefusesWhatIsNoYAML(t *testing.T) {
	if got, err := translate([]byte("{"), nil); err == nil {
		t.Errorf("got %s", got)
	}
}

func parse(t *testing.T, data []byte) (out any) {
	t.Helper()
	if err := yaml.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestForgetRemovesTheCacheAndKeepsTheMarks(t *testing.T) {
	instance := filepath.Join(t.TempDir(), "var/lib/cloud/instances/one")
	cache, mark := filepath.Join(instance, "obj.pkl"), filepath.Join(instance, "sem/config_runcmd")
	if err := os.MkdirAll(filepath.Dir(mark), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{cache, mark} {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := forget(filepath.Join(instance, "../../../../..")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(cache); !os.IsNotExist(err) {
		t.Errorf("the cache: %v", err)
	}
	if _, err := os.Stat(mark); err != nil {
		t.Errorf("the mark: %v", err)
	}
}
