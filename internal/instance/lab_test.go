package instance

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wso2/terraform-provider-dbaas/internal/cluster"
	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// labStore returns a store that uses a running lab as the tenant does, with
// the documented Roles only, and the lab's administrator.
func labStore(t *testing.T) (*Store, *cluster.Client) {
	t.Helper()
	dir := os.Getenv("DBAAS_LAB_DIR")
	if dir == "" {
		t.Skip("needs a lab: run `make test-acceptance`, or `make lab-up` and then DBAAS_LAB_DIR=$PWD/.lab go test ./internal/instance")
	}
	connect := func(file string) *cluster.Client {
		client, err := cluster.New(cluster.Config{Paths: []string{filepath.Join(dir, file)}}, func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	return New(connect("tenant.kubeconfig"), Options{}), connect("kubeconfig")
}

// labSpec is an instance whose name no other test has.
func labSpec(t *testing.T) Spec {
	t.Helper()
	spec := wantedSpec()
	spec.Namespace = "tenant-acme"
	spec.Name = "it-" + strings.ToLower(newPassword()[:8])
	spec.NetworkRef = "default/vm-net-100"
	spec.EngineVersion = "15"
	spec.ClassName = "db.t3.micro"
	spec.Class.MemoryMiB, spec.Class.MaxConnections = 1024, 50
	spec.StorageGiB = 1
	return spec
}

// destroy deletes what a test made, whoever owns it by now.
func destroy(t *testing.T, store *Store, spec Spec) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		left, err := store.Get(ctx, spec.Key())
		if errors.Is(err, ErrNotFound) {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		if left.DeletionProtection {
			unprotected := left.Spec
			unprotected.DeletionProtection = false
			if _, err := store.Update(ctx, left.Key(), unprotected); err != nil {
				t.Error(err)
			}
		}
		if _, err := store.Delete(ctx, DeleteRequest{Key: left.Key(), Intent: IntentDestroy}); err != nil {
			t.Error(err)
		}
	})
}

// remains names what stands of an instance, by label and by name.
func remains(t *testing.T, admin *cluster.Client, spec Spec) []string {
	t.Helper()
	var found []string
	note := func(kind string, o metav1.Object) {
		if o.GetLabels()[vm.LabelInstance] == spec.Name || strings.HasPrefix(o.GetName(), vm.NamesOf(spec.Name).VM) {
			found = append(found, kind+" "+o.GetName())
		}
	}
	all := metav1.ListOptions{LabelSelector: labels.Everything().String()}
	vms, err := admin.VirtualMachines.VirtualMachines(spec.Namespace).List(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	for i := range vms.Items {
		note("vm", &vms.Items[i])
	}
	claims, err := admin.Core.PersistentVolumeClaims(spec.Namespace).List(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	for i := range claims.Items {
		note("claim", &claims.Items[i])
	}
	secrets, err := admin.Core.Secrets(spec.Namespace).List(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	for i := range secrets.Items {
		note("secret", &secrets.Items[i])
	}
	volumes, err := admin.Dynamic.Resource(dataVolumeResource()).Namespace(spec.Namespace).List(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	for i := range volumes.Items {
		note("data volume", &volumes.Items[i])
	}
	return found
}

func TestLabLifeOfAnInstance(t *testing.T) {
	store, admin := labStore(t)
	for story, alter := range map[string]func(*Spec){
		"Longhorn": func(*Spec) {},
		"CDI and LVM": func(s *Spec) {
			s.OSImage, s.StorageType = "debian-12-cdi", "lvm"
		},
	} {
		t.Run(story, func(t *testing.T) {
			spec := labSpec(t)
			alter(&spec)
			ctx := deadline(t, 5*time.Minute)
			found, err := store.Check(ctx, spec)
			if err != nil || len(found) > 0 {
				t.Fatalf("check: %v, %v", found, err)
			}
			destroy(t, store, spec)
			made, err := store.Create(ctx, spec, func(*Instance) {})
			if err != nil {
				t.Fatal(err)
			}
			if made.Status != string(vm.StatusAvailable) || made.Reason != "" || len(made.Warnings) > 0 {
				t.Errorf("status %s (%s: %s), warnings %v", made.Status, made.Reason, made.Detail, made.Warnings)
			}
			// All arguments come back as they were given.
			if diff := cmp.Diff(spec, made.Spec); diff != "" {
				t.Error(diff)
			}
			expectExists(t, store, spec)
			expectForeignFieldsKept(t, store, admin, made)
			if _, err := store.Delete(ctx, DeleteRequest{Key: made.Key(), Intent: IntentOther}); err == nil {
				t.Error("a taint deletes an instance that was available")
			}
			warnings, err := store.Delete(ctx, DeleteRequest{Key: made.Key(), Intent: IntentDestroy})
			if err != nil || len(warnings) > 0 {
				t.Fatal(warnings, err)
			}
			if left := remains(t, admin, spec); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if _, err := store.Get(ctx, made.Key()); !errors.Is(err, ErrNotFound) {
				t.Errorf("get after delete: %v", err)
			}
		})
	}
}

func expectExists(t *testing.T, store *Store, spec Spec) {
	t.Helper()
	second, err := store.Create(deadline(t, time.Minute), spec, func(*Instance) { t.Error("accepted") })
	if field, ok := errors.AsType[*FieldError](err); second != nil || !ok || field.Field != FieldName || !strings.Contains(field.Advice, "terraform import") {
		t.Errorf("a second create: instance %v, error %v", second, err)
	}
}

// expectForeignFieldsKept sets what others set on a VM, switches the
// protection on and off, and wants the rest of the VM byte for byte.
func expectForeignFieldsKept(t *testing.T, store *Store, admin *cluster.Client, made *Instance) {
	t.Helper()
	foreign := `{"metadata":{"annotations":{"example.org/note":"keep"}},"spec":{"template":{
		"metadata":{"annotations":{"ovn.kubernetes.io/logical_switch":"tenant"}},
		"spec":{"dnsPolicy":"None","dnsConfig":{"nameservers":["198.18.0.53"]},"nodeSelector":{"kubernetes.io/os":"linux"}}}}}`
	machines := admin.VirtualMachines.VirtualMachines(made.Namespace)
	before, err := machines.Patch(t.Context(), made.Names.VM, types.MergePatchType, []byte(foreign), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, on := range []bool{true, false} {
		wanted := made.Spec
		wanted.DeletionProtection = on
		got, err := store.Update(deadline(t, time.Minute), made.Key(), wanted)
		if err != nil || got.DeletionProtection != on {
			t.Fatalf("protection %t: %v, %v", on, got, err)
		}
	}
	after, err := machines.Get(t.Context(), made.Names.VM, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Spec.Template, after.Spec.Template); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before.Annotations, after.Annotations); diff != "" {
		t.Error(diff)
	}
}

func TestLabInterruptedCreateIsFinished(t *testing.T) {
	store, _ := labStore(t)
	spec := labSpec(t)
	destroy(t, store, spec)
	ctx, interrupt := context.WithCancel(t.Context())
	left, err := store.Create(ctx, spec, func(*Instance) { interrupt() })
	if left == nil || err == nil {
		t.Fatalf("instance %v, error %v", left, err)
	}
	got, err := store.Update(deadline(t, 5*time.Minute), left.Key(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if got.InstanceID != left.InstanceID || got.MasterPassword != left.MasterPassword || got.CACertPEM != left.CACertPEM || got.Status != string(vm.StatusAvailable) {
		t.Errorf("finished as %s (%s), with another identity or password", got.Status, got.Reason)
	}
}
