package instance

import (
	"context"
	"fmt"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// Finish does what an earlier run left: a create that did not become available
// is brought there with the same CA, password and identity, and what only the
// first boot needed is taken out of the cluster. What is done already costs no
// write.
func (s *Store) Finish(ctx context.Context, key Key, spec Spec) (*Instance, error) {
	st, err := s.stand(ctx, key)
	if err != nil {
		return nil, err
	}
	if err := st.guard(key); err != nil {
		return nil, err
	}
	if st.gone(key) {
		return nil, wrap(ErrNotFound, "finish instance %s", key)
	}
	if st.everAvailable() {
		return s.finishAvailable(ctx, st, key, spec)
	}
	if st.credentials == nil {
		return nil, st.admitUnclaimed()
	}
	if st.held, err = parseCredentials(st.credentials); err != nil {
		return nil, err
	}
	if err := st.admit(spec); err != nil {
		return nil, err
	}
	a := ascent{spec: spec, key: key, stands: st}
	if st.vm == nil {
		if a.premises, err = s.settlePremises(ctx, spec); err != nil {
			return nil, err
		}
	}
	return s.raise(ctx, a, func(*Instance) {})
}

// finishAvailable clears away what the first boot left of an instance that was
// available. It does not wait for the guest: the guest has nothing to do for it.
func (s *Store) finishAvailable(ctx context.Context, st *standing, key Key, spec Spec) (*Instance, error) {
	if st.vm == nil {
		return nil, refuse("Nothing was changed: data volume and credentials stand as they are.",
			"finish instance %s: its virtual machine %s is gone", key, st.names.VM)
	}
	err := s.complete(ctx, key, completion{
		protect: spec.DeletionProtection, mode: passwordMode(spec.ManagePassword), address: vm.Address(st.vmi),
	})
	if err != nil {
		return nil, fmt.Errorf("finish instance %s: %w", key, err)
	}
	return s.Get(ctx, key)
}
