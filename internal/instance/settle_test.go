package instance

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

func TestCutAnswersAreSettled(t *testing.T) {
	for _, path := range []string{secretsPath, vmsPath} {
		for _, takesEffect := range []bool{true, false} {
			api, store := prepared(t)
			api.boots(t)
			boot, once := api.after, false
			api.before = func(w http.ResponseWriter, r *http.Request) bool {
				if takesEffect || once || r.Method != http.MethodPost || r.URL.Path != path {
					return false
				}
				once = true
				cut(w)
				return true
			}
			api.after = func(w http.ResponseWriter, r *http.Request) bool {
				boot(w, r)
				if !takesEffect || once || r.Method != http.MethodPost || r.URL.Path != path {
					return false
				}
				once = true
				cut(w)
				return true
			}
			got, err := store.Create(deadline(t, time.Minute), wantedSpec(), func(*Instance) {})
			if err != nil {
				t.Errorf("POST %s cut, took effect %t: %v", path, takesEffect, err)
				continue
			}
			if stored := api.secret(t, credentialsPath); got.MasterPassword != string(stored.Data[keyPassword]) {
				t.Errorf("POST %s cut: the password is not the stored one", path)
			}
		}
	}
}

func TestUnreachableAfterThePostIsRemembered(t *testing.T) {
	api, store := prepared(t)
	ctx, interrupt := context.WithCancel(t.Context())
	away := 0
	api.before = func(w http.ResponseWriter, r *http.Request) bool {
		if away == 0 && (r.Method != http.MethodPost || r.URL.Path != vmsPath) {
			return false
		}
		if away++; away == 5 {
			interrupt()
		}
		cut(w)
		return true
	}
	accepted := false
	got, err := store.Create(ctx, wantedSpec(), func(*Instance) { accepted = true })
	if got == nil || !accepted || !errors.Is(err, errUnsettled) {
		t.Errorf("instance %v, accepted %t, error %v; the VM may stand and has to be remembered", got, accepted, err)
	}
	if field, ok := errors.AsType[*FieldError](err); !ok || !strings.Contains(field.Advice, "terraform untaint") {
		t.Errorf("error %v does not say how to go on", err)
	}
}

// The same for a VM that takes kept data over.
func TestUnreachableAfterTheNewMachinesPostIsRemembered(t *testing.T) {
	api, store := prepared(t)
	api.boots(t)
	spec := wantedSpec()
	first, err := store.Create(deadline(t, time.Minute), spec, func(*Instance) {})
	if err != nil {
		t.Fatal(err)
	}
	api.Lock()
	delete(api.objects, vmisPath+"/pg-orders") // it would go with its VM
	api.Unlock()
	if _, err := store.Delete(deadline(t, time.Minute), DeleteRequest{Key: first.Key(), Intent: IntentDestroy, Retain: true}); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	away := 0
	api.Lock()
	api.before = func(w http.ResponseWriter, r *http.Request) bool {
		if away == 0 && (r.Method != http.MethodPost || r.URL.Path != vmsPath) {
			return false
		}
		if away++; away == 5 {
			interrupt()
		}
		cut(w)
		return true
	}
	api.Unlock()
	accepted := false
	got, err := store.Create(ctx, spec, func(*Instance) { accepted = true })
	if got == nil || !accepted || !errors.Is(err, errUnsettled) {
		t.Errorf("remembered %t, accepted %t, error %v; the VM may stand and has to be remembered", got != nil, accepted, err)
	}
}

func TestTheOwnerAloneSucceeds(t *testing.T) {
	api, store := prepared(t)
	// As soon as the VM runs another create takes the instance over.
	api.boots(t)
	boot := api.after
	api.after = func(w http.ResponseWriter, r *http.Request) bool {
		if boot(w, r); r.Method == http.MethodPost && r.URL.Path == vmsPath {
			stored := api.objects[credentialsPath]
			stored["metadata"].(map[string]any)["annotations"].(map[string]any)[vm.AnnotationOwner] = "another"
			api.put(credentialsPath, stored)
		}
		return false
	}
	got, err := store.Create(deadline(t, time.Minute), wantedSpec(), func(*Instance) {})
	if got != nil || !errors.Is(err, errNotOwner) {
		t.Errorf("instance %v, error %v; want neither and that it was taken over", got, err)
	}
	if !strings.Contains(api.text(credentialsPath), keyCAKey) {
		t.Error("the loser removed the CA key")
	}
}
