package knobs

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestNearestSettingWins(t *testing.T) {
	data := map[string]string{
		"never-ready":                    "true",
		"ready-after":                    "5s",
		"tenant-acme.pg-a.ready-after":   "1m",
		"tenant-acme.pg-b.ready-after":   "2m",
		"tenant-acme.a.b.c.crash-after":  "3s",
		"tenant-acme.pg-a.address-after": "soon",
	}
	got := For(data, "tenant-acme", "pg-a", map[string]string{"lab.dbaas/running-after": "9s", "other": "x"})
	want := Values{NeverReady: "true", ReadyAfter: "1m", RunningAfter: "9s"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := For(data, "tenant-acme", "a.b.c", nil).Duration(CrashAfter); got != 3*time.Second {
		t.Errorf("an object whose name has dots: crash-after is %v", got)
	}
	if got := Objects(data, ReadyAfter); len(got) != 2 {
		t.Errorf("objects with a setting of their own: %v", got)
	}
}

func TestCheckRefuses(t *testing.T) {
	for key, value := range map[string]string{
		"no-such":                     "1",
		"never-ready":                 "false",
		"ready-after":                 "-1s",
		"default.debian.ready-after":  "5",
		"image-progress":              "101",
		"webhook":                     "off",
		"addresses":                   `[{"after":"2s"},{"after":"1s"}]`,
		"tenant-acme.pg-a.addresses":  `[{"after":"0s","addresses":{"data-net":["10.0.2"]}}]`,
		"tenant-acme.pg-b.addresses":  `[{"after":"0s","repeat":true}]`,
		"tenant-acme.pg-c.no-quota":   "",
		"tenant-acme.pg-c.no-quota.x": "true",
	} {
		if err := CheckKey(key, value); err == nil {
			t.Errorf("%s=%s was accepted", key, value)
		}
	}
}

func TestEveryKnobIsExplained(t *testing.T) {
	for _, k := range Table() {
		if k.Meaning == "" || k.On == "" || k.Type == "" {
			t.Errorf("%+v lacks something", k)
		}
		if found, ok := Lookup(k.Name); !ok || found.Meaning != k.Meaning {
			t.Errorf("%s appears twice", k.Name)
		}
	}
}

func TestScheduleOverTime(t *testing.T) {
	s, err := ParseSchedule(`[
		{"after":"1s","addresses":{"data-net":["fe80::1"]}},
		{"after":"2s","addresses":{"data-net":["198.18.0.9"],"other":["10.0.2.2"]}},
		{"after":"4s","repeat":true}]`)
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string][]netip.Addr
	for _, at := range []time.Duration{0, time.Second, 3 * time.Second, 4 * time.Second, 9 * time.Second} {
		got = append(got, s.At(at))
	}
	linkLocal := map[string][]netip.Addr{"data-net": {netip.MustParseAddr("fe80::1")}}
	two := map[string][]netip.Addr{"data-net": {netip.MustParseAddr("198.18.0.9")}, "other": {netip.MustParseAddr("10.0.2.2")}}
	want := []map[string][]netip.Addr{nil, linkLocal, two, nil, linkLocal}
	if d := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); d != "" {
		t.Error(d)
	}
}
