package acceptance

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/wso2/terraform-provider-dbaas/internal/class"
	"github.com/wso2/terraform-provider-dbaas/internal/cluster"
	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

// store is what the provider uses, as the tenant behind the fault proxy.
func (l *lab) store() *instance.Store {
	l.t.Helper()
	client, err := cluster.New(cluster.Config{Paths: []string{l.kubeconfig}}, func(string) string { return "" })
	must(l.t, err)
	return instance.New(client, instance.Options{})
}

// smallest is the smallest instance.
func smallest(name string) instance.Spec {
	return instance.Spec{
		Namespace: namespace, Name: name, ClassName: "db.t3.micro", Class: class.Default()["db.t3.micro"],
		StorageGiB: 1, NetworkRef: "default/vm-net-100", EngineVersion: "15", DBName: name, MasterUsername: "dbadmin",
		Port: 5432, OSImage: "default/debian-12", StorageType: "longhorn", Running: true,
		Master: instance.Master{Mode: instance.PasswordGenerated},
	}
}

// Of any number of creates of one name one succeeds, whatever happens to their
// requests, and the others say why not.
func TestOfManyCreatesOneSucceeds(t *testing.T) {
	const creates = 64
	l := useLabAlone(t)
	spec := smallest("contested")
	for _, lost := range []rule{
		{Method: "POST", Path: "/secrets", Times: 5, Action: "cut", Effect: true},
		{Method: "PATCH", Path: "/secrets/", Times: 5, Action: "cut", Effect: true},
		{Method: "POST", Path: postVM, Times: 5, Action: "cut", Effect: true},
		{Method: "GET", Path: "/secrets/", Times: 5, Action: "cut"},
	} {
		l.inject(lost)
	}
	var mutex sync.Mutex
	var winners []*instance.Instance
	reasons := map[string]int{} // why the others did not
	var group sync.WaitGroup
	for range creates {
		store := l.store() // each is a Terraform of its own
		group.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			got, err := store.Create(ctx, spec, func(*instance.Instance) {})
			mutex.Lock()
			defer mutex.Unlock()
			if err != nil {
				reasons[err.Error()]++
			}
			switch {
			case err == nil:
				winners = append(winners, got)
			case got != nil:
				t.Errorf("a loser keeps an instance: %v", err)
			case ctx.Err() != nil:
				t.Errorf("a loser waited for its deadline: %v", err)
			}
		})
	}
	group.Wait()
	if len(winners) != 1 {
		t.Errorf("%d creates succeeded, want one; the others: %v", len(winners), reasons)
	}
	must(t, l.postedOnce())
	if stands := l.uids("contested"); len(stands) != 6 {
		t.Errorf("stand: %v; want VM, VMI, two claims, two Secrets", stands)
	}
	if len(winners) == 1 {
		held := l.credentials("contested").Data
		won := winners[0]
		if string(held["admin_password"]) != won.MasterPassword || string(held["ca_cert"]) != won.CACertPEM || string(held["instance_id"]) != won.InstanceID {
			t.Error("the Secret does not hold what the winner returned")
		}
	}
	l.reset()
	left, err := l.store().Get(t.Context(), spec.Key())
	must(t, err)
	_, err = l.store().Delete(t.Context(), instance.DeleteRequest{Key: left.Key(), Intent: instance.IntentDestroy})
	must(t, err)
	must(t, l.nothingLeft("contested")(nil))
}
