package vm_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

func TestGrownTemplatesChangeOneSize(t *testing.T) {
	before := `[{"metadata":{"name":"pg-orders-os"},"spec":{"resources":{"requests":{"storage":"20Gi"}}}},` +
		`{"extra":{"n":12345678901234567890},"metadata":{"name":"pg-orders-data"},"spec":{"resources":{"requests":{"storage":"50Gi"}}}}]`
	after, err := vm.GrownTemplates(before, "pg-orders-data", 60)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Replace(before, "50Gi", "60Gi", 1), after); diff != "" {
		t.Error(diff)
	}
	for name, claim := range map[string]string{"as large already": "pg-orders-os", "not in the list": "other"} {
		if same, err := vm.GrownTemplates(before, claim, 20); err != nil || same != before {
			t.Errorf("%s: %s, %v", name, same, err)
		}
	}
	if _, err := vm.GrownTemplates("{", "pg-orders-data", 60); err == nil {
		t.Error("a broken list is taken")
	}
	if none, err := vm.GrownTemplates("", "pg-orders-data", 60); err != nil || none != "" {
		t.Errorf("no list: %q, %v", none, err)
	}
}

func TestFilesystemIsWhatTheGuestSaidLast(t *testing.T) {
	for console, want := range map[string]int64{
		"":                                      -1,
		"dbaas: step=disk state=formatting\r\n": -1,
		"dbaas: step=disk state=ok reason=\"10176 MiB\"\r\n":                                                                    10176,
		"x\r\ndbaas: step=disk state=ok reason=\"10176 MiB\"\r\n[ 9.1] noise\r\ndbaas: step=grow state=ok reason=\"20352 MiB\"": 20352,
	} {
		got, ok := vm.FilesystemMiB(console)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %d MiB, want %d", console, got, want)
		}
	}
}
