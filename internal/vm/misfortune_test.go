package vm_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// What real controllers make of a misfortune is read as that misfortune, and
// nothing on the way there as a hopeless one.
func TestLabMisfortunes(t *testing.T) {
	l := openLab(t)
	class := l.imageClass(t)
	for name, test := range map[string]struct {
		knob, value string
		mac         string
		want        vm.State
	}{
		"unschedulable": {"unschedulable", "0/2 nodes are available: 2 Insufficient memory.", "02:5b:9f:00:12:01", vm.State{Status: "failed", Reason: "Unschedulable", Hopeless: true}},
		"crash-loop":    {"crash-loop", "true", "02:5b:9f:00:12:02", vm.State{Status: "failed", Reason: "CrashLoop", Hopeless: true}},
		"claim-pending": {"claim-pending", "no space left", "02:5b:9f:00:12:03", vm.State{Status: "failed", Reason: "ClaimPending", Hopeless: true}},
		"never-ready":   {"never-ready", "true", "02:5b:9f:00:12:04", vm.State{Status: "creating", Reason: "ConfiguringDatabase"}},
		"no-agent":      {"no-agent", "true", "02:5b:9f:00:12:05", vm.State{Status: "creating", Reason: "Booting"}},
		"useless-address": {
			"addresses", `[{"after":"0s","addresses":{"data-net":["fe80::1","10.0.2.2"]}}]`,
			"02:5b:9f:00:12:20",
			vm.State{Status: "creating", Reason: "NoAddress"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := desired()
			d.Name, d.ImageStorageClass = "vm-"+name, class
			// Harvester refuses an address that another VM of the network has.
			d.MAC = test.mac
			v := must(vm.Build(d))(t)
			if test.knob == "claim-pending" {
				// This knob is the claim's.
				v.Annotations[vm.AnnotationClaimTemplates] = strings.Replace(v.Annotations[vm.AnnotationClaimTemplates],
					`"`+vm.AnnotationDBName+`"`, `"lab.dbaas/claim-pending":"`+test.value+`","`+vm.AnnotationDBName+`"`, 1)
			} else {
				v.Annotations["lab.dbaas/"+test.knob] = test.value
			}
			l.create(t, d, v)
			_, states := l.until(t, d, "it is "+string(test.want.Reason), func(s vm.State) bool {
				if s.Status == vm.StatusCreating && !strings.Contains(s.Detail, "phase Running") {
					return false // on the way to what is meant
				}
				return s.Reason == test.want.Reason && s.Status == test.want.Status
			})
			last := states[len(states)-1]
			if diff := cmp.Diff(test.want, last, cmpopts.IgnoreFields(vm.State{}, "Detail", "Address", "Grace")); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
			for _, s := range states[:len(states)-1] {
				if s.Hopeless && s.Grace == 0 {
					t.Errorf("on the way it was given up: %s (%s): %s", s.Status, s.Reason, s.Detail)
				}
			}
			t.Log(last.Detail)
		})
	}
}
