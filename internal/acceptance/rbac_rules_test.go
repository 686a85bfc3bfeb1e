package acceptance

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wso2/terraform-provider-dbaas/internal/class"
	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

// rbacStory is the story of the rules: its accounts and its instances.
type rbacStory struct {
	*accounts
	t *testing.T
	// Of the instances one serves and is monitored, one has a disk of CDI's, and
	// one never becomes ready.
	serving, cdi *instance.Instance
}

// trial is an operation without a permission, and returns what it told.
type trial struct {
	lacking permission
	try     func(ctx context.Context, s *instance.Store) string
}

// Every rule of examples/rbac is needed, and whoever lacks one is told which:
// by the error of an operation, or, where one can do without, by its report.
// Operations of one instance come in such an order that each finds what the
// one before it left.
func TestEveryRuleOfTheManifestsIsNeeded(t *testing.T) {
	l := useLab(t)
	r := &rbacStory{accounts: newAccounts(t, l, "rule-by-rule"), t: t}
	r.build()
	tried := map[permission]bool{}
	var mutex sync.Mutex
	var group sync.WaitGroup
	for _, trials := range [][]trial{r.ofPlans(), r.ofServing(), r.ofCDI(), r.ofUnready()} {
		group.Go(func() {
			for _, one := range trials {
				r.run(one)
				mutex.Lock()
				tried[one.lacking] = true
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	for _, p := range r.sorted() {
		if !tried[p] {
			t.Errorf("%s gives %s, which no operation is known to need", r.home[p], p)
		}
	}
}

// run tries one operation. It ends as soon as the permission is named.
func (r *rbacStory) run(one trial) {
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	words := &told{heard: func(text string) {
		if one.lacking.named(text) {
			cancel()
		}
	}}
	answer := one.try(ctx, r.store(r.t, one.lacking, words))
	if one.lacking == (permission{}) {
		if answer != nothingTold {
			r.t.Errorf("with all rules: %s", answer)
		}
		return
	}
	if !one.lacking.named(answer + words.text.String()) {
		r.t.Errorf("without %s: nothing names it:\n%s\n%s", one.lacking, answer, words.text.String())
	}
}

func (r *rbacStory) spec(name string, alter ...func(*instance.Spec)) instance.Spec {
	spec := instance.Spec{
		Namespace: r.namespace, Name: name, ClassName: "db.t3.micro", Class: class.Default()["db.t3.micro"],
		StorageGiB: 1, NetworkRef: "default/vm-net-100", EngineVersion: "15", DBName: "app", MasterUsername: "dbadmin",
		Port: 5432, OSImage: "default/debian-12", StorageType: "longhorn", Running: true,
		Master: instance.Master{Mode: instance.PasswordGenerated},
	}
	for _, a := range alter {
		a(&spec)
	}
	return spec
}

func monitored(s *instance.Spec) { s.Monitoring = &cloudinit.Monitoring{ScrapeInterval: "15s"} }
func onCDI(s *instance.Spec)     { s.OSImage, s.StorageType = "default/debian-12-cdi", "lvm" }

// build makes the instances, as accounts that lack nothing that it takes.
func (r *rbacStory) build() {
	r.t.Helper()
	r.l.knob(r.namespace+".pg-unready.never-ready", "true")
	r.t.Cleanup(func() { r.l.knob(r.namespace+".pg-unready.never-ready", "") })
	unready, stop := context.WithTimeout(r.t.Context(), time.Minute)
	defer stop()
	var group sync.WaitGroup
	var failures [2]error
	group.Go(func() {
		r.serving, failures[0] = r.store(r.t, permission{}, new(told)).Create(r.t.Context(), r.spec("serving", monitored), func(*instance.Instance) {})
	})
	group.Go(func() {
		// It stands as soon as it waits.
		_, _ = r.store(r.t, permission{}, &told{heard: func(text string) {
			if strings.Contains(text, "waiting for instance") {
				stop()
			}
		}}).Create(unready, r.spec("unready"), func(*instance.Instance) {})
	})
	group.Wait()
	for _, err := range failures {
		must(r.t, err)
	}
}

// nothingTold is the answer of an operation that went well.
const nothingTold = "<nil>\n"

// answer is what an operation told with its error and its warnings.
func answer(err error, warnings ...string) string {
	return fmt.Sprintf("%v\n%s", err, strings.Join(warnings, "\n"))
}

// ofPlans are the checks of a planned create, and the first writes of one.
func (r *rbacStory) ofPlans() []trial {
	check := func(alter func(*instance.Spec)) func(context.Context, *instance.Store) string {
		return func(ctx context.Context, s *instance.Store) string {
			findings, err := s.Check(ctx, r.spec("planned", alter))
			text := answer(err)
			for _, f := range findings {
				text += f.Summary + "\n" + f.Detail + "\n"
			}
			return text
		}
	}
	create := func(name string, alter func(*instance.Spec)) func(context.Context, *instance.Store) string {
		return func(ctx context.Context, s *instance.Store) string {
			_, err := s.Create(ctx, r.spec(name, alter), func(*instance.Instance) {})
			return answer(err)
		}
	}
	asIs := func(*instance.Spec) {}
	return []trial{
		{permission{"harvesterhci.io", "virtualmachineimages", "get"}, check(asIs)},
		{permission{"harvesterhci.io", "virtualmachineimages", "list"}, check(func(s *instance.Spec) { s.OSImage = "by its display name" })},
		{permission{"k8s.cni.cncf.io", "network-attachment-definitions", "get"}, check(asIs)},
		{permission{"storage.k8s.io", "storageclasses", "get"}, check(asIs)},
		{permission{"dbaas.opencloud.wso2.com", "dbinstances", "get"}, check(asIs)},
		{permission{"cdi.kubevirt.io", "storageprofiles", "get"}, create("profiled", func(s *instance.Spec) { s.StorageType = "lvm" })},
		{permission{"", "secrets", "create"}, create("no-secret", asIs)},
		{permission{"kubevirt.io", "virtualmachines", "create"}, create("no-machine", asIs)},
	}
}

// ofServing are those of an instance that serves: read, changed, deleted.
func (r *rbacStory) ofServing() []trial {
	key, spec := r.serving.Key(), r.spec("serving", monitored)
	read := func(ctx context.Context, s *instance.Store) string {
		_, err := s.Get(ctx, key)
		return answer(err)
	}
	update := func(before func(), alter func(*instance.Spec)) func(context.Context, *instance.Store) string {
		return func(ctx context.Context, s *instance.Store) string {
			before()
			wanted := spec
			alter(&wanted)
			changed, err := s.Update(ctx, key, wanted)
			if changed == nil {
				return answer(err)
			}
			return answer(err, changed.Warnings...)
		}
	}
	remove := func(ctx context.Context, s *instance.Store) string {
		warnings, err := s.Delete(ctx, instance.DeleteRequest{Key: key, Intent: instance.IntentDestroy})
		return answer(err, warnings...)
	}
	asIs, nothing := func(*instance.Spec) {}, func() {}
	var trials []trial
	for _, p := range []permission{
		{"kubevirt.io", "virtualmachines", "get"},
		{"kubevirt.io", "virtualmachineinstances", "get"},
		{"", "persistentvolumeclaims", "get"},
		{"", "secrets", "get"},
		{"", "services", "get"},
		{"", "endpoints", "get"},
		{"monitoring.coreos.com", "servicemonitors", "get"},
	} {
		trials = append(trials, trial{p, read})
	}
	trials = append(
		trials,
		trial{permission{"kubevirt.io", "virtualmachines", "list"}, func(ctx context.Context, s *instance.Store) string {
			_, err := s.List(ctx, instance.Filter{Namespace: r.namespace})
			return answer(err)
		}},
		trial{permission{"kubevirt.io", "virtualmachines", "patch"}, update(nothing, func(s *instance.Spec) { s.Tags = map[string]string{"team": "a"} })},
		trial{permission{"", "persistentvolumeclaims", "patch"}, update(nothing, func(s *instance.Spec) {
			s.ClassName, s.Class = "db.t3.small", class.Default()["db.t3.small"]
		})},
		trial{permission{"", "secrets", "patch"}, update(nothing, func(s *instance.Spec) { s.Parameters = map[string]string{"work_mem": "8MB"} })},
		// Each puts right what comes before what it may not.
		trial{permission{"", "services", "create"}, update(r.removeOutlets, asIs)},
		trial{permission{"", "endpoints", "create"}, update(nothing, asIs)},
		trial{permission{"monitoring.coreos.com", "servicemonitors", "create"}, update(nothing, asIs)},
		trial{permission{}, update(nothing, asIs)},
		trial{permission{"", "services", "patch"}, update(r.bendOutlets, asIs)},
		trial{permission{"", "endpoints", "patch"}, update(nothing, asIs)},
		trial{permission{"monitoring.coreos.com", "servicemonitors", "patch"}, update(nothing, asIs)},
		trial{permission{"kubevirt.io", "virtualmachines", "watch"}, func(ctx context.Context, s *instance.Store) string { return answer(s.Restart(ctx, key)) }},
	)
	for _, p := range []permission{
		{"kubevirt.io", "virtualmachines", "delete"},
		{"monitoring.coreos.com", "servicemonitors", "delete"},
		{"", "endpoints", "delete"},
		{"", "services", "delete"},
		{"", "persistentvolumeclaims", "delete"},
		{"", "secrets", "delete"},
		{},
	} {
		trials = append(trials, trial{p, remove})
	}
	return trials
}

func (r *rbacStory) outlets() map[string]schema.GroupVersionResource {
	return map[string]schema.GroupVersionResource{
		"services": {Version: "v1", Resource: "services"}, "endpoints": {Version: "v1", Resource: "endpoints"}, "servicemonitors": monitors(),
	}
}

func (r *rbacStory) outletName(kind string) string {
	if kind == "servicemonitors" {
		return "pg-serving-monitor"
	}
	return "pg-serving-metrics"
}

func (r *rbacStory) removeOutlets() {
	for kind, resource := range r.outlets() {
		all := r.l.dynamic.Resource(resource).Namespace(r.namespace)
		if err := all.Delete(r.t.Context(), r.outletName(kind), metav1.DeleteOptions{}); err != nil {
			r.t.Log(err) // Kubernetes removes Endpoints without a Service
		}
		until(r.t, kind+" is gone", func() bool {
			_, err := all.Get(r.t.Context(), r.outletName(kind), metav1.GetOptions{})
			return err != nil
		})
	}
}

func (r *rbacStory) bendOutlets() {
	for kind, resource := range r.outlets() {
		patch := `{"metadata":{"labels":{"dbaas.opencloud.wso2.com/metrics":null,"release":null}}}`
		if kind == "endpoints" {
			patch = `{"subsets":[]}`
		}
		_, err := r.l.dynamic.Resource(resource).Namespace(r.namespace).Patch(r.t.Context(), r.outletName(kind), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			r.t.Error(err)
		}
	}
}

// ofCDI are those of an instance whose root disk is CDI's.
func (r *rbacStory) ofCDI() []trial {
	volumes := func(verb string) permission { return permission{"cdi.kubevirt.io", "datavolumes", verb} }
	spec := r.spec("on-cdi", onCDI)
	update := func(ctx context.Context, s *instance.Store) string {
		_, err := s.Update(ctx, r.cdi.Key(), spec)
		return answer(err)
	}
	remove := func(ctx context.Context, s *instance.Store) string {
		warnings, err := s.Delete(ctx, instance.DeleteRequest{Key: r.cdi.Key(), Intent: instance.IntentDestroy})
		return answer(err, warnings...)
	}
	return []trial{
		{volumes("patch"), func(ctx context.Context, s *instance.Store) string {
			made, err := s.Create(ctx, spec, func(*instance.Instance) {})
			if err != nil {
				return answer(err)
			}
			r.cdi = made
			return answer(err, made.Warnings...)
		}},
		{volumes("get"), update},
		{permission{}, update},
		{volumes("delete"), remove},
		{permission{}, remove},
	}
}

// ofUnready are those of an instance of which one wants to know what is wrong.
func (r *rbacStory) ofUnready() []trial {
	read := func(ctx context.Context, s *instance.Store) string {
		in, err := s.Get(ctx, instance.Key{Namespace: r.namespace, Name: "unready"})
		if err != nil {
			return answer(err)
		}
		return in.Detail
	}
	return []trial{
		{permission{"kubevirt.io", "virtualmachineinstances", "watch"}, func(ctx context.Context, s *instance.Store) string {
			_, err := s.Create(ctx, r.spec("unready"), func(*instance.Instance) {})
			return answer(err)
		}},
		{permission{"", "events", "list"}, read},
		{permission{"", "pods", "list"}, read},
		{permission{"", "pods/log", "get"}, read},
		{permission{}, func(ctx context.Context, s *instance.Store) string {
			in, err := s.Get(ctx, instance.Key{Namespace: r.namespace, Name: "unready"})
			if err == nil {
				_, err = s.Delete(ctx, instance.DeleteRequest{Key: in.Key(), Intent: instance.IntentDestroy})
			}
			return answer(err)
		}},
	}
}
