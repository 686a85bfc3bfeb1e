package vm_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// Objects as real webhooks and controllers made them mean what they meant when
// they were captured; TestLabTakesTheVM captures them anew with -update.
func TestAssessOfCapturedInstances(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "lab", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("testdata/lab holds nothing")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var c captured
			if err := json.Unmarshal(b, &c); err != nil {
				t.Fatal(err)
			}
			got := vm.Assess(vm.Observed{VM: c.VM, VMI: c.VMI, OSClaim: c.OSClaim, DataClaim: c.DataClaim, SecretHash: desired().ConfigHash})
			want := vm.State{Status: c.Want.Status, Reason: c.Want.Reason, Address: c.Want.Address, Available: c.Want.Status == vm.StatusAvailable}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(vm.State{}, "Detail")); diff != "" {
				t.Errorf("Assess (-want +got):\n%s\n%s", diff, got.Detail)
			}
		})
	}
}
