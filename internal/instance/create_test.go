package instance

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

func TestCreateReturnsWhatIsStoredAndLeavesNoBootstrapMaterial(t *testing.T) {
	api, store := prepared(t)
	api.boots(t)
	var accepted *Instance
	got, err := store.Create(deadline(t, time.Minute), wantedSpec(), func(i *Instance) { accepted = i })
	if err != nil {
		t.Fatal(err)
	}
	stored := api.secret(t, credentialsPath)
	if got.CACertPEM != string(stored.Data[keyCACert]) || got.MasterPassword != string(stored.Data[keyPassword]) {
		t.Error("CA or password are not those of the Secret")
	}
	if accepted == nil || accepted.InstanceID != got.InstanceID || accepted.OwnerID != got.OwnerID || accepted.CACertPEM != got.CACertPEM {
		t.Error("what was accepted is not what was returned")
	}
	if got.Status != string(vm.StatusAvailable) || got.Reason != "" || got.Address != "198.18.0.10" || !got.EverAvailable || len(got.Warnings) > 0 {
		t.Errorf("status %s (%s), address %s, ever available %t, warnings %v", got.Status, got.Reason, got.Address, got.EverAvailable, got.Warnings)
	}
	if _, present := stored.Data[keyCAKey]; present {
		t.Error("the CA key is still in the credentials Secret")
	}
	if text := string(api.secret(t, cloudInitPath).Data[keyUserData]); strings.Contains(text, "PRIVATE KEY") || strings.Contains(text, "SCRAM-SHA-256") {
		t.Error("bootstrap material is still in the user data")
	}
	if got, want := string(stored.Data[keyConnectionURI]), "postgresql://dbadmin@198.18.0.10:5432/orders?sslmode=verify-full"; got != want {
		t.Errorf("connection_uri = %q, want %q", got, want)
	}
	writes := api.writes()
	if last := writes[len(writes)-1]; last != "PATCH "+credentialsPath {
		t.Errorf("the last write is %s, not the removal of the CA key", last)
	}
}

func TestManagedPasswordIsInTheSecretOnly(t *testing.T) {
	api, store := prepared(t)
	api.boots(t)
	spec := wantedSpec()
	spec.Master.Mode = PasswordManaged
	got, err := store.Create(deadline(t, time.Minute), spec, func(i *Instance) {
		if i.MasterPassword != "" {
			t.Error("the accepted instance shows the password")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.MasterPassword != "" || len(api.secret(t, credentialsPath).Data[keyPassword]) == 0 {
		t.Error("the password is returned, or not in the Secret")
	}
}

func TestImageFailureWritesNothing(t *testing.T) {
	api, store := prepared(t)
	spec := wantedSpec()
	spec.OSImage = "ubuntu"
	_, err := store.Create(deadline(t, time.Minute), spec, func(*Instance) { t.Error("accepted") })
	field, ok := errors.AsType[*FieldError](err)
	if !ok || field.Field != FieldImage || !strings.Contains(field.Advice, "default/debian-12") {
		t.Errorf("error = %v, want one of os_image that names what exists", err)
	}
	if writes := api.writes(); len(writes) > 0 {
		t.Errorf("written: %v", writes)
	}
}

func TestRefusedVMLeavesSecretsThatTheNextCreateUses(t *testing.T) {
	api, store := prepared(t)
	api.boots(t)
	ctx, giveUp := context.WithCancel(t.Context())
	refuse, refusals := true, 0
	api.before = func(w http.ResponseWriter, r *http.Request) bool {
		if refuse && r.Method == http.MethodPost && r.URL.Path == vmsPath {
			if refusals++; refusals == 3 {
				giveUp()
			}
			answer(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, r.URL.Path)
			return true
		}
		return false
	}
	left, err := store.Create(ctx, wantedSpec(), func(*Instance) { t.Error("accepted") })
	leftover, ok := errors.AsType[*LeftoverError](err)
	if left != nil || !ok || !slices.Equal(leftover.Secrets, []string{"pg-orders-credentials", "pg-orders-cloudinit"}) {
		t.Fatalf("instance %v, error %v; want none and what is left", left, err)
	}
	before := api.secret(t, credentialsPath)
	api.Lock()
	refuse = false
	api.Unlock()
	got, err := store.Create(deadline(t, time.Minute), wantedSpec(), func(*Instance) {})
	if err != nil {
		t.Fatal(err)
	}
	if got.CACertPEM != string(before.Data[keyCACert]) || got.MasterPassword != string(before.Data[keyPassword]) || got.InstanceID != string(before.Data[keyInstanceID]) {
		t.Error("the second create did not use what the first stored")
	}
}

func TestSecretThatMayStandIsNamed(t *testing.T) {
	api, store := prepared(t)
	ctx, giveUp := context.WithCancel(t.Context())
	api.after = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || r.URL.Path != secretsPath {
			return false
		}
		giveUp()
		cut(w)
		return true
	}
	left, err := store.Create(ctx, wantedSpec(), func(*Instance) { t.Error("accepted") })
	leftover, ok := errors.AsType[*LeftoverError](err)
	if left != nil || !ok || !slices.Equal(leftover.Secrets, []string{"pg-orders-credentials"}) {
		t.Errorf("instance %v, error %v; want none and the Secret that may stand", left, err)
	}
}

func TestMalformedSecretStaysAsItIs(t *testing.T) {
	secret, _ := settled(t, wantedSpec())
	for _, key := range []string{keyUser, keyPassword, keyCACert, keyCAKey, keyInstanceID, keyMAC} {
		api, store := prepared(t)
		api.add(t, secretsPath, without(secret, key))
		before := api.text(credentialsPath)
		got, err := store.Create(deadline(t, time.Minute), wantedSpec(), func(*Instance) { t.Error("accepted") })
		if got != nil || err == nil || !strings.Contains(err.Error(), "pg-orders-credentials") || !strings.Contains(err.Error(), key) {
			t.Errorf("without %s: instance %v, error %v", key, got, err)
		}
		if api.text(credentialsPath) != before || len(api.writes()) > 0 {
			t.Errorf("without %s: written %v", key, api.writes())
		}
	}
}

func TestWaitEndsWithWhatWasLastSeen(t *testing.T) {
	_, store := prepared(t) // nothing boots
	ctx, interrupt := context.WithCancel(t.Context())
	got, err := store.Create(ctx, wantedSpec(), func(*Instance) { interrupt() })
	unavailable, ok := errors.AsType[*UnavailableError](err)
	if got == nil || !ok || unavailable.Hopeless || !errors.Is(err, context.Canceled) || unavailable.Detail == "" {
		t.Errorf("instance %v, error %v", got, err)
	}
	if got != nil && (got.InstanceID == "" || got.MasterPassword == "" || got.Status != string(vm.StatusCreating)) {
		t.Error("the instance that did not become available lacks its identity or password")
	}
}

// Between its look at the Secret and its mark on the VM the owner before can
// lose the instance. Then it stops, so whoever has the Secret must go on.
func TestNewOwnerGoesOnWhereTheOldOneMarkedTheMachine(t *testing.T) {
	api, store := prepared(t)
	api.boots(t)
	ctx, giveUp := context.WithCancel(t.Context())
	if left, err := store.Create(ctx, wantedSpec(), func(*Instance) { giveUp() }); left == nil || err == nil {
		t.Fatalf("instance %v, error %v; want one that was interrupted", left, err)
	}
	marked := false
	api.after = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && r.URL.Path == credentialsPath && !marked {
			marked = true
			api.put(vmPath, merge(api.objects[vmPath], change{"metadata": map[string]any{"annotations": map[string]any{vm.AnnotationAvailableSince: "2026-11-30T21:00:00Z"}}}))
		}
		return false
	}
	got, err := store.Create(deadline(t, time.Minute), wantedSpec(), func(*Instance) {})
	if err != nil {
		t.Fatal(err)
	}
	if !marked || got.Status != string(vm.StatusAvailable) || api.secret(t, credentialsPath).Data[keyCAKey] != nil {
		t.Errorf("marked %t, status %s (%s), or the CA key is still there", marked, got.Status, got.Reason)
	}
}
