package instance

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// standingInstance puts an instance that is available into the API.
func standingInstance(t *testing.T, api *apiServer) Key {
	t.Helper()
	spec := wantedSpec()
	secret, held := settled(t, spec)
	api.add(t, secretsPath, without(secret, keyCAKey))
	cloudInit := secret.DeepCopy()
	cloudInit.Name, cloudInit.Data = "pg-orders-cloudinit", nil
	documents, err := guestDocuments(spec, held)
	if err != nil {
		t.Fatal(err)
	}
	cloudInit.Data = documents
	api.add(t, secretsPath, cloudInit)
	api.add(t, vmsPath, since(machineOf(t, spec, held)))
	claim := claimOf(spec, held)
	claim.UID = ""
	api.add(t, claimsPath, claim)
	os := claim.DeepCopy()
	os.Name, os.Annotations = "pg-orders-os", nil
	api.add(t, claimsPath, os)
	return Key{Namespace: "tenant", Name: "orders", InstanceID: held.InstanceID, OwnerID: held.OwnerID}
}

func TestDeleteRemovesTheMachineFirstAndTheIdentityLast(t *testing.T) {
	api, store := newAPIServer(t)
	key := standingInstance(t, api)
	warnings, err := store.Delete(deadline(t, time.Minute), DeleteRequest{Key: key, Intent: IntentDestroy})
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	want := []string{
		"DELETE " + vmPath,
		"DELETE " + claimsPath + "/pg-orders-data",
		"DELETE " + claimsPath + "/pg-orders-os",
		"DELETE " + cloudInitPath,
		"DELETE " + credentialsPath,
	}
	if diff := cmp.Diff(want, api.writes()); diff != "" {
		t.Error(diff)
	}
	// Again: gone is success.
	if _, err := store.Delete(deadline(t, time.Minute), DeleteRequest{Key: key, Intent: IntentDestroy}); err != nil {
		t.Error(err)
	}
}

func TestDeleteRefusesBeforeItSendsAnything(t *testing.T) {
	api, store := newAPIServer(t)
	key := standingInstance(t, api)
	_, err := store.Delete(deadline(t, time.Minute), DeleteRequest{Key: key, Intent: IntentOther})
	if _, ok := errors.AsType[*RefusalError](err); !ok {
		t.Errorf("taint of an available instance: %v", err)
	}
	nameless := key
	nameless.InstanceID = ""
	if _, err := store.Delete(deadline(t, time.Minute), DeleteRequest{Key: nameless, Intent: IntentDestroy}); err == nil {
		t.Error("an instance without identity is deleted")
	}
	taken := key
	taken.OwnerID = "another"
	warnings, err := store.Delete(deadline(t, time.Minute), DeleteRequest{Key: taken, Intent: IntentDestroy})
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "taken it over") {
		t.Errorf("another's instance: warnings %v, error %v", warnings, err)
	}
	other := key
	other.InstanceID = "2c8a9a9e-0000-4000-8000-000000000000"
	if _, err := store.Delete(deadline(t, time.Minute), DeleteRequest{Key: other, Intent: IntentDestroy}); err != nil {
		t.Errorf("another instance: %v", err)
	}
	if writes := api.writes(); len(writes) > 0 {
		t.Errorf("sent: %v", writes)
	}
}

func TestDeleteLeavesVolumesOfOthers(t *testing.T) {
	api, store := newAPIServer(t)
	key := standingInstance(t, api)
	api.Lock()
	data := api.objects[claimsPath+"/pg-orders-data"]
	data["metadata"].(map[string]any)["annotations"].(map[string]any)[vm.AnnotationInstanceID] = "another"
	api.Unlock()
	if _, err := store.Delete(deadline(t, time.Minute), DeleteRequest{Key: key, Intent: IntentDestroy}); err != nil {
		t.Fatal(err)
	}
	if api.text(claimsPath+"/pg-orders-data") == "" {
		t.Error("the volume of another instance was deleted")
	}
}

func TestDeleteSurvivesPassingFailures(t *testing.T) {
	for _, code := range []int{http.StatusConflict, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		api, store := newAPIServer(t)
		key := standingInstance(t, api)
		hit := map[string]bool{}
		api.before = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodDelete || hit[r.URL.Path] {
				return false
			}
			hit[r.URL.Path] = true
			answer(w, code, metav1.StatusReasonConflict, r.URL.Path)
			return true
		}
		if _, err := store.Delete(deadline(t, time.Minute), DeleteRequest{Key: key, Intent: IntentDestroy}); err != nil {
			t.Errorf("%d: %v", code, err)
		}
		for _, path := range []string{vmPath, credentialsPath, cloudInitPath, claimsPath + "/pg-orders-data", claimsPath + "/pg-orders-os"} {
			if api.text(path) != "" {
				t.Errorf("%d: %s is left", code, path)
			}
		}
	}
}

func TestDeleteSaysWhatRemains(t *testing.T) {
	api, store := newAPIServer(t)
	key := standingInstance(t, api)
	ctx, giveUp := context.WithCancel(t.Context())
	deleted := false
	api.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodDelete || r.URL.Path != vmPath {
			if deleted && r.URL.Path == vmPath {
				giveUp()
			}
			return false
		}
		deleted = true
		write(w, http.StatusOK, map[string]any{}) // accepted, and held by a finalizer
		return true
	}
	_, err := store.Delete(ctx, DeleteRequest{Key: key, Intent: IntentDestroy})
	if err == nil || !strings.Contains(err.Error(), "virtual machine tenant/pg-orders") {
		t.Errorf("error = %v", err)
	}
	if api.text(credentialsPath) == "" || api.text(claimsPath+"/pg-orders-data") == "" {
		t.Error("volumes or Secrets went before the machine")
	}
}
