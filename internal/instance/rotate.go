package instance

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// A rotation puts the new password beside the one in force, lets the guest
// restart with its verifier, and makes it the one in force once the guest is
// ready. Whoever finds one that was interrupted finishes it with the password
// that it has: at every moment one of the Secret's two passwords logs in.

// draw begins the rotation that is wanted, unless one is under way already.
func (w *work) draw(ctx context.Context) error {
	if w.st.next() != "" || !w.wanted.Master.rotates(w.recorded()) {
		return nil
	}
	if !w.wanted.Running {
		return refuse("Start the instance, in the same apply or before: only a guest that boots takes a new password.",
			"rotate the password of instance %s: it stands still", w.key)
	}
	if w.st.credentials == nil {
		return refuse("Restore the Secret from a backup. Nothing was changed.",
			"rotate the password of instance %s: secret %s is gone", w.key, w.st.names.Credentials)
	}
	if _, err := parseCredentials(w.st.credentials); err != nil {
		return err
	}
	next := string(w.wanted.Master.Supplied)
	if w.wanted.Master.Mode != PasswordSupplied {
		next = newPassword()
	}
	w.store.report(ctx, "rotating the password in secret "+w.st.names.Credentials)
	var err error
	w.st.credentials, err = w.store.patchSecret(ctx, w.st.credentials, change{
		"metadata": change{"annotations": w.wanted.Master.record().annotations()},
		"data":     change{keyNextPassword: []byte(next)},
	})
	return err
}

// recorded is which numbers the password in force belongs to.
func (w *work) recorded() passwordRecord {
	r := w.st.passwordRecord()
	if r == (passwordRecord{}) && w.st.vm == nil {
		return passwordRecord{version: w.wanted.Master.PriorVersion, rotation: w.wanted.Master.PriorRotation}
	}
	return r
}

// count makes the guest's next document another one than that of the last
// rotation, so that it cannot be ready with the old password.
func (w *work) count() {
	if w.st.next() == "" || !w.wanted.Running {
		return
	}
	if w.st.cloudInit != nil && cloudinit.HasBootstrap(w.st.cloudInit.Data[keyUserData]) {
		return // the interrupted rotation has counted
	}
	w.after.config.PasswordRotation = w.before.config.PasswordRotation + 1
}

// promote makes the next password the one in force: the guest was seen ready
// with it.
func (w *work) promote(ctx context.Context) error {
	next := w.st.next()
	if next == "" || !w.wanted.Running {
		return nil
	}
	var err error
	w.st.credentials, err = w.store.patchSecret(ctx, w.st.credentials, change{"data": change{
		keyPassword: []byte(next), keyNextPassword: nil,
	}})
	if err != nil {
		return fmt.Errorf("finish the rotation of instance %s: %w", w.key, err)
	}
	return nil
}

// forgetRecord is the change of the credentials Secret once the VM records
// which numbers its password belongs to.
func forgetRecord(secret *corev1.Secret) change {
	if secret.Data[keyNextPassword] != nil || passwordRecordOf(secret) == (passwordRecord{}) {
		return nil
	}
	return change{vm.AnnotationPasswordVersion: nil, vm.AnnotationPasswordRotation: nil}
}
