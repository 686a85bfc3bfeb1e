package vm

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RequestGiB is what a claim asks for, in whole GiB rounded down.
func RequestGiB(claim *corev1.PersistentVolumeClaim) int64 {
	return claim.Spec.Resources.Requests.Storage().Value() >> 30
}

// ResizePending says whether a claim's volume has grown and only its use by a
// machine is still missing.
func ResizePending(claim *corev1.PersistentVolumeClaim) bool {
	for _, c := range claim.Status.Conditions {
		if c.Type == corev1.PersistentVolumeClaimFileSystemResizePending && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// GrownTemplates returns AnnotationClaimTemplates in which one claim asks for
// more, all else as it was. A claim that the list lacks, or that asks for as
// much, changes nothing.
func GrownTemplates(templates, claim string, gib int64) (string, error) {
	if templates == "" {
		return "", nil
	}
	var all []map[string]any
	decoder := json.NewDecoder(strings.NewReader(templates))
	decoder.UseNumber() // a number must come out as it went in
	if err := decoder.Decode(&all); err != nil {
		return "", fmt.Errorf("read claim templates: %w", err)
	}
	changed := false
	for _, template := range all {
		name, _, err := unstructured.NestedString(template, "metadata", "name")
		if err != nil || name != claim {
			continue
		}
		size := gibibytes(gib)
		before, _, err := unstructured.NestedString(template, "spec", "resources", "requests", string(corev1.ResourceStorage))
		if err != nil {
			return "", fmt.Errorf("read claim template of %s: %w", claim, err)
		}
		if before == size.String() {
			continue
		}
		changed = true
		if err := unstructured.SetNestedField(template, size.String(), "spec", "resources", "requests", string(corev1.ResourceStorage)); err != nil {
			return "", fmt.Errorf("change claim template of %s: %w", claim, err)
		}
	}
	if !changed {
		return templates, nil
	}
	text, err := json.Marshal(all)
	if err != nil {
		return "", fmt.Errorf("marshal claim templates: %w", err)
	}
	return string(text), nil
}
