package faulttest

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What the matrices are made with, without a lab.

func TestRequestIsFoundAgainOnAnotherInstance(t *testing.T) {
	const base = "/api/v1/namespaces/tenant-acme/"
	for story, test := range map[string]struct{ recorded, same, other string }{
		"object":   {base + "secrets/pg-fax-credentials", base + "secrets/pg-fbx-credentials?x=1", base + "secrets/pg-fbx-cloudinit"},
		"list":     {base + "secrets?fieldManager=a", base + "secrets", base + "secrets/pg-fbx-cloudinit"},
		"selector": {base + "events?fieldSelector=involvedObject.name%3Dpg-fax", base + "events?fieldSelector=involvedObject.name%3Dpg-fbx&limit=1", base + "events?fieldSelector=involvedObject.name%3Dpg-fbx-os"},
		"launcher": {base + "pods/virt-launcher-pg-fax-abcde/log", base + "pods/virt-launcher-pg-fbx-zzzzz/log", base + "pods/virt-launcher-pg-fax-abcde/log"},
		"launcher's events": {
			base + "events?fieldSelector=involvedObject.name%3Dvirt-launcher-pg-fax-abcde",
			base + "events?fieldSelector=involvedObject.name%3Dvirt-launcher-pg-fbx-zzzzz",
			base + "events?fieldSelector=involvedObject.name%3Dpg-fbx",
		},
	} {
		t.Run(story, func(t *testing.T) {
			found := regexp.MustCompile(signatureOf(request{Method: "GET", Path: test.recorded}, "fax").pattern("fbx"))
			if !found.MatchString(test.same) {
				t.Errorf("%s does not find %s", found, test.same)
			}
			if found.MatchString(test.other) {
				t.Errorf("%s finds %s", found, test.other)
			}
		})
	}
}

func TestCellsAreMadeOfWhatCameAfterTheMark(t *testing.T) {
	const vm = "/apis/kubevirt.io/v1/namespaces/tenant-acme/virtualmachines"
	record := []request{
		{Index: 1, Method: "GET", Path: vm + "/pg-fax"},
		{Index: 2, Method: "GET", Path: vm + "/pg-fax"},
		{Index: 3, Method: "POST", Path: vm},
		{Index: 4, Method: "WATCH", Path: vm + "?fieldSelector=metadata.name%3Dpg-fax&watch=true"},
	}
	count := map[string]int{}
	var stale []string
	for _, c := range cellsOf(operation{name: "create"}, record, 1, "fax") {
		count[c.request.String()]++
		if c.fault.rule.Action == "stale" {
			stale = append(stale, c.String()+" "+c.snapshot)
		}
	}
	got := map[string]bool{}
	for name := range count {
		got[name] = true
	}
	want := map[string]bool{"GET virtualmachines/pg-{name}": true, "POST virtualmachines": true, "WATCH virtualmachines?metadata.name=pg-{name}": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"create/stale/GET virtualmachines/pg-{name}#1 marked"}, stale); diff != "" {
		t.Errorf("old answers:\n%s", diff)
	}
	if count["POST virtualmachines"] < 10 || count["WATCH virtualmachines?metadata.name=pg-{name}"] < 10 {
		t.Errorf("too few kinds of faults: %v", count)
	}
}

func TestLedgerGoesOnWhereItStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	first, err := openLedger(path)
	must(t, err)
	for cell, o := range map[string]outcome{
		"create/403/a#1": healed, "create/403/b#1": next, "create/500/a#1": wrong, "delete/500/a#1": lost, "delete/403/a#1": missed,
	} {
		must(t, first.add(result{Cell: cell, Outcome: o, How: map[outcome]string{next: "resumed"}[o]}))
	}
	must(t, first.file.Close())
	second, err := openLedger(path)
	must(t, err)
	if second.has("create/500/a#1") || second.has("delete/500/a#1") {
		t.Error("what was judged wrong is not tried again")
	}
	var b bytes.Buffer
	second.table(&b, []string{"create", "delete"}, []string{"403", "500"})
	want := strings.TrimLeft(`
| operation | tried | healed itself | next apply | lost | 403 | 500 |
|---|--:|--:|--:|--:|--:|--:|
| create | 2 | 1 | 1 | 0 | 1+1 |  |
| delete | 0 | 0 | 0 | 0 |  |  |
| **all** | 2 | 1 | 1 | 0 |  |  |

create, resumed: 1

judged wrong: 0, requests that did not come: 1
`, "\n")
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestErrorsThatDoNotHelpAreJudgedWrong(t *testing.T) {
	good := "Get secret tenant-acme/pg-fax-credentials: injected fault: 500 InternalError"
	if err := helps("fax", good); err != nil {
		t.Errorf("%q: %v", good, err)
	}
	for _, bad := range []string{"Get secret: injected fault", "pg-fax: injected fault", "get pg-fax: something", "get pg-fay: injected fault"} {
		if helps("fax", bad) == nil {
			t.Errorf("%q is taken for helpful", bad)
		}
	}
}
