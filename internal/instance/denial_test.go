package instance

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestDeniedNamesTheMissingRule(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	rbac := func(text string) error {
		return fmt.Errorf("get secret a/b: %w", apierrors.NewForbidden(secrets, "b", fmt.Errorf("%s", text)))
	}
	for text, want := range map[string]*Denial{
		`User "u" cannot get resource "secrets" in API group "" in the namespace "a"`:                         {Verb: "get", Resource: "secrets", Namespace: "a"},
		`User "u" cannot list resource "storageclasses" in API group "storage.k8s.io" at the cluster scope`:   {Verb: "list", Resource: "storageclasses", Group: "storage.k8s.io"},
		`exceeded quota: small, requested: count/secrets=1, used: count/secrets=3, limited: count/secrets=3`:  nil,
		`admission webhook "validator.harvesterhci.io" denied the request: the namespace is being terminated`: nil,
	} {
		got, ok := Denied(rbac(text))
		if ok != (want != nil) {
			t.Errorf("%s: denied = %t", text, ok)
		}
		if want != nil {
			if diff := cmp.Diff(*want, got); diff != "" {
				t.Errorf("%s:\n%s", text, diff)
			}
		}
	}
	if _, ok := Denied(apierrors.NewNotFound(secrets, "b")); ok {
		t.Error("a 404 is taken for a missing rule")
	}
}
