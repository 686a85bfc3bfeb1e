package instance

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	harvesterv1 "github.com/harvester/harvester/pkg/apis/harvesterhci.io/v1beta1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

const (
	imagesPath  = "/apis/harvesterhci.io/v1beta1/namespaces/default/virtualmachineimages"
	vmsPath     = "/apis/kubevirt.io/v1/namespaces/tenant/virtualmachines"
	vmisPath    = "/apis/kubevirt.io/v1/namespaces/tenant/virtualmachineinstances"
	secretsPath = "/api/v1/namespaces/tenant/secrets"
	claimsPath  = "/api/v1/namespaces/tenant/persistentvolumeclaims"

	vmPath          = vmsPath + "/pg-orders"
	credentialsPath = secretsPath + "/pg-orders-credentials"
	cloudInitPath   = secretsPath + "/pg-orders-cloudinit"
)

// prepared returns an API with everything that an instance needs.
func prepared(t *testing.T) (*apiServer, *Store) {
	t.Helper()
	api, store := newAPIServer(t)
	api.add(t, imagesPath, &harvesterv1.VirtualMachineImage{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "debian-12"},
		Status: harvesterv1.VirtualMachineImageStatus{
			StorageClassName: "lh-debian",
			Conditions:       []harvesterv1.Condition{{Type: harvesterv1.ImageImported, Status: corev1.ConditionTrue}},
		},
	})
	api.add(t, "/apis/storage.k8s.io/v1/storageclasses", &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "longhorn"}, Provisioner: longhornProvisioner,
	})
	api.add(t, "/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions",
		&metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "k8s.cni.cncf.io/v1", Kind: "NetworkAttachmentDefinition"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "vlan"},
		})
	return api, store
}

// boots makes every VM that is posted available at once.
func (a *apiServer) boots(t *testing.T) {
	t.Helper()
	a.after = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && r.URL.Path == vmsPath {
			a.boot(t)
		}
		return false
	}
}

// boot makes what Harvester and KubeVirt would make of the VM that stands.
func (a *apiServer) boot(t *testing.T) {
	t.Helper()
	text, err := json.Marshal(a.objects[vmPath])
	if err != nil {
		t.Error(err)
	}
	machine := &kubevirtv1.VirtualMachine{}
	if err := json.Unmarshal(text, machine); err != nil {
		t.Error(err)
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "tenant", Name: "pg-orders-data",
		Labels: vm.Labels("orders"),
		Annotations: map[string]string{
			vm.AnnotationInstanceID:    machine.Annotations[vm.AnnotationInstanceID],
			vm.AnnotationInstanceClass: machine.Annotations[vm.AnnotationInstanceClass],
		},
	}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new("longhorn"), Resources: tenGiB()}}
	vmi := &kubevirtv1.VirtualMachineInstance{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "tenant", Name: "pg-orders",
			Annotations: machine.Spec.Template.ObjectMeta.Annotations,
		},
		Status: kubevirtv1.VirtualMachineInstanceStatus{
			Phase:      kubevirtv1.Running,
			Conditions: []kubevirtv1.VirtualMachineInstanceCondition{{Type: kubevirtv1.VirtualMachineInstanceReady, Status: corev1.ConditionTrue}},
			Interfaces: []kubevirtv1.VirtualMachineInstanceNetworkInterface{{Name: vm.DataNetwork, IP: "198.18.0.10"}},
		},
	}
	a.put(claimsPath+"/pg-orders-data", plain(t, claim))
	a.put(vmisPath+"/pg-orders", plain(t, vmi))
}

func tenGiB() corev1.VolumeResourceRequirements {
	return corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}}
}

func (a *apiServer) secret(t *testing.T, path string) *corev1.Secret {
	t.Helper()
	text := a.text(path)
	if text == "" {
		return nil
	}
	secret := &corev1.Secret{}
	if err := json.Unmarshal([]byte(text), secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

func deadline(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
