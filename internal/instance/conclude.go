package instance

import (
	"context"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// The end of an update: what was seen is written down.

func (w *work) completion() completion {
	return completion{protect: w.wanted.DeletionProtection, master: w.master(), address: vm.Address(w.st.vmi)}
}

// master is how the master password is wanted, with the numbers that it really
// has: those of a rotation that is still to come are not recorded.
func (w *work) master() Master {
	m := w.wanted.Master
	if w.st.next() != "" || m.rotates(w.st.passwordRecord()) {
		recorded := w.st.passwordRecord()
		m.Version, m.Rotation = recorded.version, recorded.rotation
	}
	return m
}

// conclude writes down what was seen: the password in force, and where the
// instance and its metrics can be reached.
func (w *work) conclude(ctx context.Context) error {
	if err := w.promote(ctx); err != nil {
		return err
	}
	if err := w.store.complete(ctx, w.key, w.completion()); err != nil {
		return err
	}
	if w.wanted.Monitoring == nil {
		return nil
	}
	warnings, err := w.store.publish(ctx, w.key, metricsOf(w.key, w.wanted, vm.Address(w.st.vmi)))
	w.warnings = append(w.warnings, warnings...)
	if err != nil && w.creating {
		w.warnings = append(w.warnings, unpublishedWarning(err))
		return nil
	}
	return err
}
