package instance

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// errNotOwner says that another create took the instance over. Whoever gets it
// stops at once and keeps nothing: the instance is the other's now.
var errNotOwner = refuse("Nothing of it is in this state. Import it if it is to be managed here, else choose another name.",
	"another create of this instance has taken it over")

// stillOwner asks the credentials Secret whether the instance is still ours.
func (s *Store) stillOwner(ctx context.Context, key Key) error {
	name := vm.NamesOf(key.Name).Credentials
	secret, err := find(ctx, s, query{"secret", key.Namespace, name}, s.client.Core.Secrets(key.Namespace).Get)
	if err != nil {
		return err
	}
	if secret == nil {
		return fmt.Errorf("get secret %s/%s: it was deleted while the instance was being created; apply again", key.Namespace, name)
	}
	return owns(secret, key)
}

// owns compares a credentials Secret with the ids that somebody holds.
func owns(secret metav1.Object, key Key) error {
	a := secret.GetAnnotations()
	if a[vm.AnnotationInstanceID] != key.InstanceID || a[vm.AnnotationOwner] != key.OwnerID {
		return errNotOwner
	}
	return nil
}

// foreign says, as a clause, why what stands is not the instance that the
// caller remembers; it is empty when it is. A caller that remembers nothing
// knows nothing as a stranger.
func (st *standing) foreign(key Key) string {
	instanceID, ownerID := st.identity()
	switch {
	case key.InstanceID == "" || (instanceID == "" && st.vm == nil):
		return ""
	case instanceID != key.InstanceID:
		return fmt.Sprintf("it is another instance (id %q) than the one in the state (id %q)", instanceID, key.InstanceID)
	case st.vm != nil && st.vm.Annotations[vm.AnnotationInstanceID] != key.InstanceID:
		return fmt.Sprintf("its virtual machine belongs to another instance (id %q) than the one in the state (id %q)",
			st.vm.Annotations[vm.AnnotationInstanceID], key.InstanceID)
	case ownerID != "" && key.OwnerID != "" && ownerID != key.OwnerID:
		return fmt.Sprintf("another create (owner id %q) has taken it over; the state's is %q", ownerID, key.OwnerID)
	}
	return ""
}

// strange says whether the VM is neither this provider's nor the operator's,
// and nothing else that stands has to do with it.
func (st *standing) strange() bool {
	return st.vm != nil && !vm.Ours(st.vm, st.key.Name) && !st.operatorManaged() && !st.anythingOurs("") &&
		st.vm.Annotations[vm.AnnotationInstanceID] == ""
}

// guard refuses to change what is not the caller's.
func (st *standing) guard(key Key) error {
	if st.strange() {
		return st.stranger("change", "virtual machine", st.names.VM)
	}
	if st.operatorManaged() {
		return refuse("Create a new instance, move the data with pg_dump and pg_restore, then forget this one with `terraform state rm`.",
			"change instance %s: the DBaaS operator manages it", key)
	}
	if why := st.foreign(key); why != "" {
		return refuse("Find out who else manages the instance. `terraform state rm` forgets it here without touching it.",
			"change instance %s: %s", key, why)
	}
	return nil
}
