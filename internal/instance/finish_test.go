package instance

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

func TestFinishGoesOnWithTheSameIdentity(t *testing.T) {
	api, store := prepared(t)
	ctx, interrupt := context.WithCancel(t.Context())
	left, err := store.Create(ctx, wantedSpec(), func(*Instance) { interrupt() })
	if left == nil {
		t.Fatal(err)
	}
	api.Lock()
	api.boot(t)
	api.Unlock()
	// It serves, and still has to be finished.
	read, err := store.Get(deadline(t, time.Minute), left.Key())
	if err != nil {
		t.Fatal(err)
	}
	if read.Status != string(vm.StatusAvailable) || read.Reason != string(vm.ReasonBootstrapMaterialPresent) {
		t.Errorf("before: status %s (%s)", read.Status, read.Reason)
	}
	if read.EngineVersionActual != wantedSpec().EngineVersion {
		t.Errorf("what serves has the version %q", read.EngineVersionActual)
	}
	got, err := store.Update(deadline(t, time.Minute), left.Key(), wantedSpec())
	if err != nil {
		t.Fatal(err)
	}
	if got.InstanceID != left.InstanceID || got.OwnerID != left.OwnerID || got.CACertPEM != left.CACertPEM || got.MasterPassword != left.MasterPassword {
		t.Error("the finished instance is not the one that was begun")
	}
	if strings.Contains(api.text(credentialsPath), keyCAKey) {
		t.Error("the CA key is still there")
	}
	// What is done costs no write.
	done := len(api.writes())
	if _, err := store.Update(deadline(t, time.Minute), left.Key(), wantedSpec()); err != nil {
		t.Fatal(err)
	}
	if writes := api.writes(); len(writes) != done {
		t.Errorf("finishing twice writes %v", writes[done:])
	}
}

func TestFailedRedactionIsAWarning(t *testing.T) {
	api, store := prepared(t)
	api.boots(t)
	failing := true
	api.before = func(w http.ResponseWriter, r *http.Request) bool {
		if failing && r.Method == http.MethodPatch && r.URL.Path == cloudInitPath {
			answer(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, r.URL.Path)
			return true
		}
		return false
	}
	got, err := store.Create(deadline(t, time.Minute), wantedSpec(), func(*Instance) {})
	if err != nil || len(got.Warnings) != 1 || got.Reason != string(vm.ReasonBootstrapMaterialPresent) {
		t.Fatalf("instance %+v, error %v", got, err)
	}
	api.Lock()
	failing = false
	api.Unlock()
	got, err = store.Update(deadline(t, time.Minute), got.Key(), wantedSpec())
	if err != nil || got.Reason != "" {
		t.Errorf("reason %s, error %v after finishing", got.Reason, err)
	}
}

// What is told of an instance that was seen available, and then could not be
// read, is what the next read tells.
func TestCreateThatCannotBeReadBackTellsWhatItSaw(t *testing.T) {
	api, store := prepared(t)
	api.boots(t)
	accepted := false
	api.before = func(w http.ResponseWriter, r *http.Request) bool {
		if accepted && r.Method == http.MethodGet && r.URL.Path == credentialsPath {
			answer(w, http.StatusForbidden, metav1.StatusReasonForbidden, r.URL.Path)
			return true
		}
		return false
	}
	got, err := store.Create(deadline(t, time.Minute), wantedSpec(), func(*Instance) {
		api.Lock()
		defer api.Unlock()
		accepted = true
	})
	if err != nil || len(got.Warnings) != 2 {
		t.Fatalf("instance %+v, error %v", got, err)
	}
	if got.EngineVersionActual != wantedSpec().EngineVersion || got.Status != string(vm.StatusAvailable) {
		t.Errorf("status %s, version %q", got.Status, got.EngineVersionActual)
	}
}

// What was available holds data: an error would taint it.
func TestFailedStopOfANewInstanceIsAWarning(t *testing.T) {
	api, store := prepared(t)
	api.boots(t)
	api.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch || r.URL.Path != vmPath {
			return false
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte("Halted")) {
			return false
		}
		answer(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, r.URL.Path)
		return true
	}
	spec := wantedSpec()
	spec.Running = false
	got, err := store.Create(deadline(t, time.Minute), spec, func(*Instance) {})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "still runs") {
		t.Errorf("warnings %q", got.Warnings)
	}
	if !got.Running {
		t.Error("the instance is read as stopped")
	}
}
