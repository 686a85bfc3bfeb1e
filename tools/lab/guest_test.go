package lab_test

import (
	"net/netip"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kubevirt "kubevirt.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/guest/sample"
	"github.com/wso2/terraform-provider-dbaas/tools/lab/labtest"
)

func TestContainerBootsTheVMsSecret(t *testing.T) { bootsSecret(t, guest.Container) }

func TestVMBootsTheVMsSecret(t *testing.T) {
	if os.Getenv("LAB_TEST_VM") == "" {
		t.Skip("a virtual machine boots for minutes without KVM: make test-vm, or in tools/lab LAB_TEST_VM=1 go test -vet=off -timeout 40m -run TestVMBootsTheVMsSecret .")
	}
	bootsSecret(t, guest.VM)
}

// bootsSecret goes the provider's way: a Secret and a VirtualMachine, ready when
// the command inside the guest says so.
func bootsSecret(t *testing.T, kind guest.Kind) {
	lab := labtest.Start(t, kind)
	document := sample.New(t, t.TempDir())
	m := lab.Create(t, labtest.Machine{
		Name: labtest.Name(t), UserData: string(document.UserData), Probe: []string{"/usr/bin/test", "-e", "/run/lab-ready"},
	})
	vmi := labtest.Wait(t, lab, m.VMI(), "readiness and an address", func(vmi *kubevirt.VirtualMachineInstance) bool {
		return isReady(vmi) && len(vmi.Status.Interfaces) > 0 && vmi.Status.Interfaces[0].IP != ""
	})
	address, err := netip.ParseAddr(vmi.Status.Interfaces[0].IP)
	if err != nil {
		t.Fatal(err)
	}
	got, err := document.Query(t.Context(), address, "select ssl from pg_stat_ssl where pid = pg_backend_pid()")
	if err != nil || got != "t" {
		t.Errorf("got %q, %v", got, err)
	}
}

func isReady(vmi *kubevirt.VirtualMachineInstance) bool {
	for _, c := range vmi.Status.Conditions {
		if c.Type == kubevirt.VirtualMachineInstanceReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
