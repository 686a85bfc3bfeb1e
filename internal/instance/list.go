package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// listConcurrency is how many instances List reads at a time.
const listConcurrency = 10

// Filter says which instances List returns.
type Filter struct {
	Namespace string
	// Selector chooses by labels of the virtual machines, in Kubernetes' syntax;
	// empty for all.
	Selector string
	// Status is the one that instances must have; empty for any.
	Status string
}

// Statuses are all that Instance.Status can be.
func Statuses() []string {
	var all []string
	for _, status := range vm.Statuses() {
		all = append(all, string(status))
	}
	return all
}

// CheckSelector says what is wrong with a label selector.
func CheckSelector(selector string) error {
	_, err := labels.Parse(selector)
	return err
}

// List reads the instances of a namespace, sorted by name: those whose virtual
// machine stands, whether the provider or the DBaaS operator made it.
func (s *Store) List(ctx context.Context, f Filter) ([]*Instance, error) {
	selector := vm.LabelInstance
	if f.Selector != "" {
		selector += "," + f.Selector
	}
	machines, err := retry(ctx, s, func(ctx context.Context) (*kubevirtv1.VirtualMachineList, error) {
		return s.client.VirtualMachines.VirtualMachines(f.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	})
	if err != nil {
		return nil, fmt.Errorf("list vms of namespace %s by %q: %w", f.Namespace, selector, err)
	}
	found := make([]*Instance, len(machines.Items))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(listConcurrency)
	for i := range machines.Items {
		name := machines.Items[i].Labels[vm.LabelInstance]
		if machines.Items[i].Name != vm.NamesOf(name).VM {
			continue // somebody's own machine that carries the label
		}
		group.Go(func() error {
			read, err := s.Get(gctx, Key{Namespace: f.Namespace, Name: name})
			if errors.Is(err, ErrNotFound) {
				return nil // deleted meanwhile
			}
			found[i] = read
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(in *Instance) bool {
		return in == nil || f.Status != "" && in.Status != f.Status
	})
	slices.SortFunc(found, func(a, b *Instance) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}
