package vm_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

func TestWords(t *testing.T) {
	failed := &vm.Word{Step: "install", State: "failed", Reason: "PostgreSQL 16 is not to be had"}
	for name, test := range map[string]struct {
		console       string
		last, failure *vm.Word
	}{
		"nothing": {"[    0.00] Linux version 6.1\nlogin: ", nil, nil},
		"progress among the kernel's lines": {
			"[ 12.1] EXT4-fs mounted\r\n[ 13.0] cloud-init: dbaas: step=install state=running\r\n[ 13.2] audit\r\n",
			&vm.Word{Step: "install", State: "running"}, nil,
		},
		"failure": {
			"dbaas: step=start state=running\r\ndbaas: step=install state=failed reason=\"PostgreSQL 16 is not to be had\"\r\n",
			failed, failed,
		},
		"failure, then another service speaks": {
			"dbaas: step=install state=failed reason=\"PostgreSQL 16 is not to be had\"\ndbaas: step=certificate state=issued\n",
			&vm.Word{Step: "certificate", State: "issued"}, failed,
		},
		"the step is tried again": {
			"dbaas: step=install state=failed reason=\"no route\"\ndbaas: step=install state=running\n",
			&vm.Word{Step: "install", State: "running"}, nil,
		},
		"the guest boots again": {
			"dbaas: step=disk state=failed reason=x\ndbaas: step=start state=running reason=\"document c0ffee\"\n",
			&vm.Word{Step: "start", State: "running", Reason: "document c0ffee"}, nil,
		},
		"the last good configuration serves": {
			"dbaas: step=configure state=failed reason=\"FATAL: invalid value\"\ndbaas: step=configure state=restored\n",
			&vm.Word{Step: "configure", State: "restored"},
			&vm.Word{Step: "configure", State: "failed", Reason: "FATAL: invalid value"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			last, failure := vm.Words(test.console)
			if diff := cmp.Diff([]*vm.Word{test.last, test.failure}, []*vm.Word{last, failure}); diff != "" {
				t.Errorf("Words (-want +got):\n%s", diff)
			}
		})
	}
}
