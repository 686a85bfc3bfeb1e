package acceptance

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

func images() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "harvesterhci.io", Version: "v1beta1", Resource: "virtualmachineimages"}
}

func TestUnusableImageLeavesNothingBehind(t *testing.T) {
	l := useLab(t)
	l.failedImage("fails-for-good", "the checksum is another one")
	for story, test := range map[string]struct{ image, text string }{
		"absent":    {"default/no-such-image", `(?s)default/debian-12\s+\(debian-12-generic-amd64\.qcow2\)`},
		"ambiguous": {l.displayName("twice-a"), `(?s)default/twice-a,\s+default/twice-b`},
		"importing": {"default/never-imports", `(?s)default/never-imports.*importing\s+\(42\s+%\)`},
		"failed":    {"default/fails-for-good", `(?s)default/fails-for-good.*the\s+checksum\s+is\s+another\s+one.*default/debian-12\s`},
	} {
		for when, given := range map[string]args{
			"known at plan": {"os_image": quote(test.image)},
			// The value of another resource is known only after that was made.
			"known at apply": {"os_image": "terraform_data.image.output"},
		} {
			t.Run(story+" "+when, func(t *testing.T) {
				given["timeouts"] = `{ create = "6s" }`
				resource.Test(t, resource.TestCase{
					ProtoV6ProviderFactories: factories(),
					CheckDestroy:             l.nothingLeft("imageless"),
					Steps: []resource.TestStep{{
						PreConfig:   l.reset,
						Config:      l.config("imageless", given) + fmt.Sprintf("resource \"terraform_data\" \"image\" {\n  input = %q\n}\n", test.image),
						ExpectError: regexp.MustCompile(test.text),
					}},
				})
				if left := l.remains("imageless"); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
				if writes := l.requests("", "POST", "PUT", "PATCH", "DELETE"); len(writes) > 0 {
					t.Errorf("written: %v", writes)
				}
			})
		}
	}
}

// displayName is what Harvester's UI calls an image.
func (l *lab) displayName(image string) string {
	l.t.Helper()
	return l.imageField(image, "displayName")
}

func (l *lab) imageField(image, field string) string {
	l.t.Helper()
	found, err := l.dynamic.Resource(images()).Namespace("default").Get(l.t.Context(), image, metav1.GetOptions{})
	must(l.t, err)
	text, _, err := unstructured.NestedString(found.Object, "spec", field)
	must(l.t, err)
	return text
}

// failedImage makes an image of whose import Harvester has given up for a
// reason, and removes it after the test. With its cache behind, Harvester may
// give up for another one: that its own backing image "is being deleted".
func (l *lab) failedImage(name, why string) {
	l.t.Helper()
	all := l.dynamic.Resource(images()).Namespace("default")
	remove := func() { must(l.t, all.Delete(context.Background(), name, metav1.DeleteOptions{})) }
	ctx, cancel := context.WithTimeout(l.t.Context(), 2*time.Minute)
	defer cancel()
	for {
		made, err := all.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "harvesterhci.io/v1beta1", "kind": "VirtualMachineImage",
			"metadata": map[string]any{"name": name, "annotations": map[string]any{"lab.dbaas/image-fails": why}},
			"spec": map[string]any{
				"displayName": name + ".qcow2", "sourceType": "download", "retry": int64(1),
				"url":                    strings.TrimSuffix(l.imageField("debian-12", "url"), path.Base(l.imageField("debian-12", "url"))) + name + ".qcow2",
				"storageClassParameters": map[string]any{"migratable": "true", "numberOfReplicas": "3", "staleReplicaTimeout": "30"},
			},
		}}, metav1.CreateOptions{})
		must(l.t, err)
		reason := ""
		l.followImage(ctx, made, func(image *unstructured.Unstructured, _ bool) bool {
			reason = gaveUp(image)
			return reason != ""
		})
		if strings.Contains(reason, why) {
			l.t.Cleanup(remove)
			return
		}
		remove()
		l.followImage(ctx, made, func(_ *unstructured.Unstructured, gone bool) bool { return gone })
	}
}

// followImage returns when an image is as wanted.
func (l *lab) followImage(ctx context.Context, since *unstructured.Unstructured, wanted func(image *unstructured.Unstructured, gone bool) bool) {
	l.t.Helper()
	changes, err := l.dynamic.Resource(images()).Namespace("default").Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", since.GetName()).String(), ResourceVersion: since.GetResourceVersion(),
	})
	must(l.t, err)
	defer changes.Stop()
	for change := range changes.ResultChan() {
		if image, ok := change.Object.(*unstructured.Unstructured); ok && wanted(image, change.Type == watch.Deleted) {
			return
		}
	}
	l.t.Fatalf("image %s does not become what the test needs", since.GetName())
}

// gaveUp is why Harvester has given up an image, empty if it has not.
func gaveUp(image *unstructured.Unstructured) string {
	conditions, _, err := unstructured.NestedSlice(image.Object, "status", "conditions")
	if err != nil {
		return ""
	}
	for _, condition := range conditions {
		if c, ok := condition.(map[string]any); ok && c["type"] == "RetryLimitExceeded" && c["status"] == "True" {
			return fmt.Sprint(c["message"])
		}
	}
	return ""
}
