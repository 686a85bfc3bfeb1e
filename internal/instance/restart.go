package instance

import (
	"context"
	"errors"
	"fmt"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// Restart stops the machine of an instance that was available, starts it, and
// returns when it is available again: with whatever configuration is written
// down by then. An instance that stands still is refused, since a restart must
// not start what somebody stopped.
func (s *Store) Restart(ctx context.Context, key Key) error {
	st, err := s.stand(ctx, key)
	if err != nil {
		return err
	}
	if st.gone(key) {
		return wrap(ErrNotFound, "restart instance %s", key)
	}
	if err := st.guard(key); err != nil {
		return err
	}
	switch {
	case st.vm == nil || !st.everAvailable() || st.bootstrapLeft():
		return refuse("Apply first: that finishes it.", "restart instance %s: work on it is left unfinished", key)
	case st.dataReplaced():
		return st.refuseReplaced()
	case !vm.KeptRunning(st.vm, st.vmi):
		return refuse("Set running = true and apply to start it.", "restart instance %s: it does not run", key)
	}
	err = s.stop(ctx, st)
	if err == nil {
		err = s.start(ctx, st)
	}
	if err != nil {
		return fmt.Errorf("%w; should the virtual machine stand still now, the next apply starts it", err)
	}
	hash := vm.TemplateHash(st.vm)
	_, err = s.await(ctx, st, func(o vm.Observed, state vm.State) bool {
		return state.Available && o.VMI.UID != st.ended && o.VMI.Annotations[vm.AnnotationConfigHash] == hash
	})
	if unavailable, ok := errors.AsType[*UnavailableError](err); ok {
		unavailable.Update = true
	}
	return err
}
