package labtest

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Knob sets a knob in the ConfigMap lab-system/lab-knobs until the test ends:
// for one object of the tenant's namespace, or for all if object is empty.
func (l *Lab) Knob(t testing.TB, object, knob, value string) {
	t.Helper()
	key := knob
	if object != "" {
		key = Tenant + "." + object + "." + knob
	}
	patch := func(text string) error {
		knobs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "lab-system", Name: "lab-knobs"}}
		return l.Admin.Client.Patch(withoutCancel(t), knobs, client.RawPatch("application/merge-patch+json", []byte(text)))
	}
	t.Cleanup(func() {
		if err := patch(quoted(key, nil)); err != nil {
			t.Errorf("remove the knob %s: %v", key, err)
		}
	})
	if err := patch(quoted(key, &value)); err != nil {
		t.Fatalf("set the knob %s: %v", key, err)
	}
}

// quoted is the merge patch that sets one key of a ConfigMap, or removes it.
func quoted(key string, value *string) string {
	patch, err := json.Marshal(map[string]any{"data": map[string]*string{key: value}})
	if err != nil {
		panic(err) // strings always marshal
	}
	return string(patch)
}
