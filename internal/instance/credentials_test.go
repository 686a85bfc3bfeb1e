package instance

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/wso2/terraform-provider-dbaas/internal/pki"
)

func TestNewCredentialsAreReadBack(t *testing.T) {
	secret, held := settled(t, wantedSpec())
	if held.User != "dbadmin" || held.OwnerID != "earlier-owner" || held.finished() {
		t.Errorf("held = %q, owner %q, finished %t", held.User, held.OwnerID, held.finished())
	}
	if len(held.Password) < 32 || strings.ContainsFunc(held.Password, func(r rune) bool { return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", r) }) {
		t.Errorf("the password has %d characters or others than letters and digits", len(held.Password))
	}
	if err := pki.CheckKey(held.CACert, held.CAKey); err != nil {
		t.Error(err)
	}
	second, again := settled(t, wantedSpec())
	for key := range secret.Data {
		if key != keyUser && cmp.Equal(secret.Data[key], second.Data[key]) {
			t.Errorf("two draws have the same %s", key)
		}
	}
	if held.MAC[1] != '2' && held.MAC[1] != '6' && held.MAC[1] != 'a' && held.MAC[1] != 'e' || again.MAC == held.MAC {
		t.Errorf("%s is not a random locally administered unicast address", held.MAC)
	}
}

func TestDamagedCredentialsAreNamedNotQuoted(t *testing.T) {
	secret, held := settled(t, wantedSpec())
	_, other := settled(t, wantedSpec())
	const private = "very-private-text"
	damage := map[string]map[string]string{
		keyUser:       {"is empty": ""},
		keyPassword:   {"is empty": ""},
		keyCACert:     {"is empty": "", "is not one CA certificate": private},
		keyInstanceID: {"is empty": "", "is not a UUID": private},
		keyMAC:        {"is empty": "", "is not the hardware address": private},
		keyCAKey:      {"is empty": "", "is not the private key": other.CAKey},
	}
	for key, values := range damage {
		for problem, value := range values {
			damaged := secret.DeepCopy()
			damaged.Data[key] = []byte(value)
			expectSecretError(t, damaged, key, problem)
		}
		if key != keyCAKey { // its absence means that the instance was available
			expectSecretError(t, without(secret, key), key, "is missing")
		}
	}
	if text := fmt.Sprintf("%v %+v %#v %s", held, held, held, held); strings.Contains(text, held.Password) || strings.Contains(text, "PRIVATE") {
		t.Error("printing credentials shows a secret")
	}
}

func expectSecretError(t *testing.T, damaged *corev1.Secret, key, problem string) {
	t.Helper()
	_, err := parseCredentials(damaged)
	if err == nil {
		t.Errorf("key %s that %s is accepted", key, problem)
		return
	}
	want := fmt.Sprintf("read secret tenant/pg-orders-credentials: key %q %s", key, problem)
	if !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %q does not begin with %q", err, want)
	}
	for _, private := range []string{"very-private-text", "PRIVATE KEY"} {
		if strings.Contains(err.Error(), private) {
			t.Errorf("the error of key %s quotes its value", key)
		}
	}
}
