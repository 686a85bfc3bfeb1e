package instance

import (
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// fieldManager names the provider in managedFields.
	fieldManager = "terraform-provider-dbaas"

	// mergePatch sends only the members that change: everything that others
	// wrote stays byte for byte.
	mergePatch = types.MergePatchType
)

// change is a JSON merge patch: a nil member removes.
type change map[string]any

// onVersion renders the change so that it applies only to the object exactly
// as it was read: any other write in between makes it a conflict.
func (c change) onVersion(read metav1.Object) ([]byte, error) {
	return c.guarded(change{"uid": read.GetUID(), "resourceVersion": read.GetResourceVersion()})
}

// onObject renders the change so that it applies to the same object, whatever
// was written to it since: for objects whose status changes all the time.
func (c change) onObject(read metav1.Object) ([]byte, error) {
	return c.guarded(change{"uid": read.GetUID()})
}

func (c change) guarded(precondition change) ([]byte, error) {
	if meta, ok := c["metadata"].(change); ok {
		maps.Copy(precondition, meta)
	}
	whole := maps.Clone(c)
	whole["metadata"] = precondition
	body, err := json.Marshal(whole)
	if err != nil {
		return nil, fmt.Errorf("marshal patch: %w", err)
	}
	return body, nil
}

// wrap adds what was tried to an error and keeps nil nil.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
