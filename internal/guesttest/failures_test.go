package guesttest

import (
	"fmt"
	"testing"
)

// TestCreateFailsWithTheGuestsOwnWords: whatever is wrong in the guest, the
// apply ends long before its timeout, and says what the guest said.
func TestCreateFailsWithTheGuestsOwnWords(t *testing.T) {
	l := useLab(t, containerLab, "container")
	for name, test := range map[string]struct {
		arguments args
		knob      string
		words     []string
	}{
		"no-version": {
			args{"engine_version": `"16"`},
			"",
			[]string{"step install is failed", "PostgreSQL 16 is not to be had from the package sources of this machine"},
		},
		"no-mirror": {
			args{"engine_version": `"16"`},
			"package-proxy",
			[]string{"step install is failed", "reading the package lists failed: E: "},
		},
		"no-proxy": {
			args{"engine_version": `"16"`, "package_source": fmt.Sprintf(`{ apt_proxy = "http://%s:9" }`, l.address(1))},
			"",
			[]string{"step install is failed", l.address(1) + ":9"},
		},
		"no-value": {
			args{"parameters": `{ work_mem = "banana" }`},
			"",
			[]string{"step configure is failed", "invalid value for parameter 'work_mem': 'banana'"},
		},
		"no-start": {
			args{"parameters": `{ wal_level = "minimal" }`},
			"",
			[]string{"step configure is failed", "WAL streaming (max_wal_senders > 0) requires wal_level"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.knob != "" {
				l.tool(t, "knob", test.knob+"=down")
				t.Cleanup(func() { l.restore(t, test.knob) })
			}
			test.arguments["timeouts"] = `{ create = "25m" }`
			l.newInstance(t, name, test.arguments).refused(t, test.words...)
		})
	}
}
