package guest

import (
	"net/netip"
	"testing"
)

func TestSimMachineTakesItsLeaseAndHoldsItsVolumes(t *testing.T) {
	ctx := t.Context()
	s := NewSim(t.TempDir())
	if err := s.EnsureVolume(ctx, Volume{Name: "pvc-1", Bytes: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	spec := Spec{
		Namespace: "tenant-acme", Name: "pg-a", UID: "u1",
		Disks: []Disk{{Name: "os-disk", Volume: "pvc-1", Boot: true}},
		NICs:  []NIC{{Name: "data-net", MAC: "02:00:00:00:00:01", Address: netip.MustParseAddr("198.18.0.10")}},
	}
	m, err := s.Boot(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	moved := netip.MustParseAddr("198.18.0.77")
	s.SetLease("02:00:00:00:00:01", moved)
	nics, err := m.Interfaces(ctx)
	if err != nil || len(nics) != 1 || nics[0].Addresses[0] != moved {
		t.Errorf("after the new lease the agent says %v, %v", nics, err)
	}
	if err := s.DeleteVolume(ctx, "pvc-1"); err == nil {
		t.Error("a volume was deleted under a running machine")
	}
	if err := m.Shutdown(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if exit := <-m.Done(); exit.Failed {
		t.Errorf("a shutdown ended as %+v", exit)
	}
	if err := s.DeleteVolume(ctx, "pvc-1"); err != nil {
		t.Error(err)
	}
	if _, err := s.Boot(ctx, spec); err == nil {
		t.Error("a machine booted without its root volume")
	}
}
