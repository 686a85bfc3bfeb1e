package instance

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	harvesterv1 "github.com/harvester/harvester/pkg/apis/harvesterhci.io/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestImageReferences(t *testing.T) {
	for text, want := range map[string]imageRef{
		"debian-12":         {"default", "debian-12"},
		"images/debian-12":  {"images", "debian-12"},
		"images/a/b":        {"images", "a/b"},
		"Debian 12 (cloud)": {"default", "Debian 12 (cloud)"},
		"100%.img":          {"default", "100%.img"},
		"":                  {},
		"images/":           {},
		"/debian-12":        {},
	} {
		got, err := parseImageRef(text)
		if got != want || (err != nil) != (want == imageRef{}) {
			t.Errorf("%q: %v, error %v; want %v", text, got, err, want)
		}
	}
}

func imageNamed(object, display string) harvesterv1.VirtualMachineImage {
	return harvesterv1.VirtualMachineImage{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: object},
		Spec:       harvesterv1.VirtualMachineImageSpec{DisplayName: display},
	}
}

func TestImagesAreChosenByDisplayName(t *testing.T) {
	images := []harvesterv1.VirtualMachineImage{imageNamed("b", "two"), imageNamed("a", "two"), imageNamed("c", "one")}
	if found, err := pickImage(images, "default", "one"); err != nil || found.Name != "c" {
		t.Errorf("one: %v, %v", found, err)
	}
	_, err := pickImage(images, "default", "two")
	if err == nil || !strings.Contains(err.Error(), "default/a, default/b") || errors.Is(err, errImageAbsent) {
		t.Errorf("ambiguous: %v", err)
	}
	_, err = pickImage(images, "default", "none")
	field, ok := errors.AsType[*FieldError](err)
	if !ok || !errors.Is(err, errImageAbsent) || !strings.Contains(field.Advice, "default/a (two), default/b (two), default/c (one)") {
		t.Errorf("absent: %v", err)
	}
}

func TestImageReadiness(t *testing.T) {
	is := func(conditions ...harvesterv1.Condition) harvesterv1.VirtualMachineImage {
		i := imageNamed("debian-12", "Debian")
		i.Status.Conditions = conditions
		return i
	}
	imported := harvesterv1.Condition{Type: harvesterv1.ImageImported, Status: corev1.ConditionTrue}
	ready := is(imported)
	ready.Status.StorageClassName, ready.Status.VirtualSize = "lh-x", 3<<30
	large := *ready.DeepCopy()
	large.Status.VirtualSize, large.Spec.Backend = 20<<30+1, harvesterv1.VMIBackendCDI
	going := *ready.DeepCopy()
	going.DeletionTimestamp = &metav1.Time{}
	downloading := is(harvesterv1.Condition{Type: harvesterv1.ImageImported, Status: corev1.ConditionUnknown})
	downloading.Status.Progress = 42
	failed := is(
		harvesterv1.Condition{Type: harvesterv1.ImageRetryLimitExceeded, Status: corev1.ConditionTrue},
		harvesterv1.Condition{Type: harvesterv1.ImageImported, Status: corev1.ConditionFalse, Message: "connection refused"},
	)
	retrying := is(harvesterv1.Condition{Type: harvesterv1.ImageImported, Status: corev1.ConditionFalse, Message: "connection refused"})
	for story, test := range map[string]struct {
		image     harvesterv1.VirtualMachineImage
		want      Image
		err       string
		importing bool
	}{
		"ready":             {image: ready, want: Image{ID: "default/debian-12", DisplayName: "Debian", StorageClass: "lh-x", VirtualSize: 3 << 30, DiskGiB: 20}},
		"large":             {image: large, want: Image{ID: "default/debian-12", DisplayName: "Debian", StorageClass: "lh-x", VirtualSize: 20<<30 + 1, DiskGiB: 21, CDI: true}},
		"being deleted":     {image: going, err: "it is being deleted"},
		"downloading":       {image: downloading, err: "42 %", importing: true},
		"without class":     {image: is(imported), err: "no storage class yet", importing: true},
		"new":               {image: is(), err: "still importing", importing: true},
		"Harvester retries": {image: retrying, err: "still importing", importing: true},
		"Harvester gave up": {image: failed, err: "its import failed: connection refused"},
	} {
		got, err := assessImage(&test.image)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s:\n%s", story, diff)
		}
		if (test.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.err) || errors.Is(err, errImageImporting) != test.importing {
			t.Errorf("%s: error %v", story, err)
		}
	}
}
