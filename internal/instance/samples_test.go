package instance

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/class"
	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

func wantedSpec() Spec {
	return Spec{
		Namespace: "tenant", Name: "orders",
		ClassName: "db.t3.small", Class: class.Class{VCPU: 1, MemoryMiB: 2048, MaxConnections: 100},
		StorageGiB: 10, NetworkRef: "default/vlan", EngineVersion: "16",
		DBName: "orders", MasterUsername: "dbadmin", Port: 5432,
		OSImage: "debian-12", StorageType: "longhorn", Running: true, Master: Master{Mode: PasswordGenerated},
	}
}

// settled returns the Secret of a create that got no further, and its content.
func settled(t *testing.T, spec Spec) (*corev1.Secret, credentials) {
	t.Helper()
	secret, err := newCredentials(spec, "earlier-owner")
	if err != nil {
		t.Fatal(err)
	}
	held, err := parseCredentials(secret)
	if err != nil {
		t.Fatal(err)
	}
	return secret, held
}

// machineOf returns the VM that a create would have posted for the Secret.
func machineOf(t *testing.T, spec Spec, held credentials) *kubevirtv1.VirtualMachine {
	t.Helper()
	a := ascentOf(spec, held)
	machine, err := vm.Build(a.desired())
	if err != nil {
		t.Fatal(err)
	}
	machine.UID = "vm-uid"
	return machine
}

func ascentOf(spec Spec, held credentials) ascent {
	key := Key{Namespace: spec.Namespace, Name: spec.Name, InstanceID: held.InstanceID, OwnerID: held.OwnerID}
	return ascent{
		spec: spec, key: key,
		stands:   &standing{key: key, names: vm.NamesOf(spec.Name), held: held},
		premises: premises{image: Image{ID: "default/debian-12", StorageClass: "lh-debian", DiskGiB: 20}},
	}
}

// claimOf returns the data claim that Harvester makes for the Secret's instance.
func claimOf(spec Spec, held credentials) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: spec.Namespace, Name: vm.NamesOf(spec.Name).DataVolume, UID: "data-uid",
			Labels: vm.Labels(spec.Name),
			Annotations: map[string]string{
				vm.AnnotationInstanceID: held.InstanceID, vm.AnnotationEngineVersion: spec.EngineVersion,
				vm.AnnotationInstanceClass: spec.ClassName, vm.AnnotationDBName: spec.DBName, vm.AnnotationMasterUsername: spec.MasterUsername,
			},
		},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new(spec.StorageType), Resources: tenGiB()},
	}
}

// since marks a VM as available at some time.
func since(machine *kubevirtv1.VirtualMachine) *kubevirtv1.VirtualMachine {
	machine = machine.DeepCopy()
	machine.Annotations[vm.AnnotationAvailableSince] = time.Unix(0, 0).UTC().Format(time.RFC3339)
	return machine
}

// without returns the Secret lacking a key.
func without(secret *corev1.Secret, key string) *corev1.Secret {
	secret = secret.DeepCopy()
	delete(secret.Data, key)
	return secret
}
