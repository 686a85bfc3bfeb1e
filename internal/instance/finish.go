package instance

import (
	"context"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// finish goes on with a create that did not become available, with the same CA,
// password and identity.
func (s *Store) finish(ctx context.Context, st *standing, key Key, spec Spec) (warnings []string, err error) {
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
	if st.vm != nil && !vm.WantsRunning(st.vm) {
		// Harvester halts what finds no quota, and then it stays down.
		if err := s.start(ctx, st); err != nil {
			return nil, err
		}
	}
	made, err := s.raise(ctx, a, func(*Instance) {})
	if made == nil {
		return nil, err
	}
	return made.Warnings, err
}
