package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

func TestErrorsBecomeDiagnosticsThatSayWhatToDo(t *testing.T) {
	cause := errors.New("get image debian: it does not exist")
	for story, test := range map[string]struct {
		err  error
		want string // attribute, then detail
	}{
		"plain":              {cause, "|Get image debian: it does not exist.\n\nTry again. If the error stays, report it with the provider's version and the log that TF_LOG=debug makes."},
		"attribute":          {&instance.FieldError{Field: instance.FieldImage, Err: cause, Advice: "Name an image."}, "os_image|Get image debian: it does not exist.\n\nName an image."},
		"refusal":            {&instance.RefusalError{Err: errors.New("delete instance a/b: it is protected"), Advice: "Unprotect it."}, "|Delete instance a/b: it is protected.\n\nUnprotect it."},
		"timed out":          {fmt.Errorf("get vm a/b: %w", context.DeadlineExceeded), "|Get vm a/b: context deadline exceeded.\n\nIf the cluster only needs longer, raise the limit in timeouts."},
		"begins with a name": {errors.New("pg-orders: gone"), "|pg-orders: gone.\n\nTry again. If the error stays, report it with the provider's version and the log that TF_LOG=debug makes."},
		"Secrets left": {
			&instance.LeftoverError{Err: errors.New("create vm: refused"), Namespace: "a", Secrets: []string{"pg-b-credentials", "pg-b-cloudinit"}},
			"|Create vm: refused.\n\nTry again. If the error stays, report it with the provider's version and the log that TF_LOG=debug makes.\n\nNo virtual machine was created. Of this instance only Secrets stand, if anything, and the next apply uses them again, so that CA and password stay. To give it up instead, remove them:\n\n  kubectl -n a delete secret pg-b-credentials pg-b-cloudinit",
		},
	} {
		t.Run(story, func(t *testing.T) {
			var diags diag.Diagnostics
			report(&diags, "Cannot", test.err)
			got := ""
			for _, d := range diags {
				attribute := ""
				if at, ok := d.(diag.DiagnosticWithPath); ok {
					attribute = at.Path().String()
				}
				got += attribute + "|" + d.Detail()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whoever lacks a rule is sent to the manifest that has it.
func TestEveryRuleLeadsToItsManifest(t *testing.T) {
	files, err := filepath.Glob("../../examples/rbac/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, resources := range regexp.MustCompile(`resources: \[([^]]+)\]`).FindAllStringSubmatch(string(text), -1) {
			for resource := range strings.SplitSeq(resources[1], ", ") {
				if got := manifest(resource); got != filepath.Base(file) {
					t.Errorf("%s: the error names %s, the rule is in %s", resource, got, file)
				}
			}
		}
	}
}

func TestMissingPermissionIsNamed(t *testing.T) {
	want := "The account that the provider uses may not create virtualmachines. It needs this rule, in a Role of namespace a:\n\n" +
		`  apiGroups: ["kubevirt.io"], resources: ["virtualmachines"], verbs: ["create"]` +
		"\n\nAll that the provider needs there is in examples/rbac/tenant-role.yaml, which its documentation shows."
	got := missingRule(instance.Denial{Verb: "create", Resource: "virtualmachines", Group: "kubevirt.io", Namespace: "a"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
