package provider

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/wso2/terraform-provider-dbaas/internal/class"
	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
	"github.com/wso2/terraform-provider-dbaas/internal/instance"
	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

func orders() *instance.Instance {
	return &instance.Instance{
		Spec: instance.Spec{
			Namespace: "tenant-acme", Name: "orders", ClassName: "db.t3.micro",
			Class: class.Class{VCPU: 1, MemoryMiB: 1024, MaxConnections: 50}, StorageGiB: 10,
			NetworkRef: "default/vm-net-100", EngineVersion: "16", DBName: "orders", MasterUsername: "dbadmin", Port: 5432,
			OSImage: "debian", StorageType: "longhorn", DeletionProtection: true, Retain: true, Running: true,
			Master:     instance.Master{Mode: instance.PasswordGenerated, Rotation: "3"},
			Parameters: map[string]string{"work_mem": "16MB"}, Extensions: []string{"pg_trgm", "pgcrypto"}, AllowedCIDRs: []string{"10.0.0.0/8"},
			DNSNames: []string{"orders.example.com"}, SSHPublicKeys: []string{"ssh-ed25519 AAAA me"},
			PackageSource: cloudinit.PackageSource{APTProxy: "http://proxy:3142"},
			Monitoring:    &cloudinit.Monitoring{AllowedCIDRs: []string{}, ScrapeInterval: "1m", GrafanaBaseURL: "https://grafana.example.com/g"}, Tags: map[string]string{"team": "payments"},
			Static: &cloudinit.Static{
				Address: netip.MustParsePrefix("2001:db8::2/64"), Gateway: netip.MustParseAddr("2001:db8::1"),
				Nameservers: []netip.Addr{netip.MustParseAddr("2001:db8::53"), netip.MustParseAddr("1.1.1.1")},
			},
		},
		InstanceID: "id", OwnerID: "owner", Names: vm.NamesOf("orders"), GuestKnown: true, MachineKnown: true,
		Status: "available", Address: "2001:db8::2",
		CACertPEM: "PEM", CAValidUntil: time.Date(2036, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600)), MasterPassword: "generated",
		SecretStatus: instance.SecretActive, VCPU: 1, MemoryMiB: 1024, MaxConnections: 50, EngineVersionActual: "16",
	}
}

func TestWhatWasReadMakesTheSpecThatMadeIt(t *testing.T) {
	read := orders()
	m := modelOf(read, model{}, types.MapNull(types.StringType))
	got, err := m.spec(t.Context(), model{}, read.Class)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(read.Spec, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

func TestConnectionIsRenderedForClients(t *testing.T) {
	m := modelOf(orders(), model{}, types.MapNull(types.StringType))
	got := map[string]string{}
	for name, value := range map[string]types.String{
		"id": m.ID, "grafana_url": m.GrafanaURL, "address": m.Address, "endpoint": m.Endpoint, "connection_uri": m.ConnectionURI, "jdbc_url": m.JDBCURL, "ca_valid_until": m.CAValidUntil,
	} {
		got[name] = value.ValueString()
	}
	want := map[string]string{
		"id": "tenant-acme/orders", "grafana_url": "https://grafana.example.com/g/d/dbaas-postgresql?var-namespace=tenant-acme&var-instance=orders", "address": "2001:db8::2", "endpoint": "[2001:db8::2]:5432",
		"connection_uri": "postgresql://dbadmin@[2001:db8::2]:5432/orders?sslmode=verify-full",
		"jdbc_url":       "jdbc:postgresql://[2001:db8::2]:5432/orders?ssl=true&sslmode=verify-full",
		"ca_valid_until": "2036-01-02T02:04:05Z",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadKeepsWhatTheClusterDoesNotHave(t *testing.T) {
	before := modelOf(orders(), model{}, types.MapNull(types.StringType))
	for story, test := range map[string]struct {
		change func(*instance.Instance)
		value  func(model) types.String
		want   types.String
	}{
		"password of a removed Secret": {
			func(i *instance.Instance) { i.MasterPassword = "" }, func(m model) types.String { return m.MasterPassword }, types.StringValue("generated"),
		},
		"CA of a removed Secret": {
			func(i *instance.Instance) { i.CACertPEM = "" }, func(m model) types.String { return m.CACertPEM }, types.StringValue("PEM"),
		},
		"password that is now in the Secret only": {
			func(i *instance.Instance) { i.Master.Mode, i.MasterPassword = instance.PasswordManaged, "" }, func(m model) types.String { return m.MasterPassword }, types.StringNull(),
		},
		"last address while stopped": {
			func(i *instance.Instance) { i.Status, i.Address = "stopped", "" }, func(m model) types.String { return m.Endpoint }, types.StringValue("[2001:db8::2]:5432"),
		},
		"no address when degraded": {
			func(i *instance.Instance) { i.Status, i.Address = "degraded", "" }, func(m model) types.String { return m.Endpoint }, types.StringNull(),
		},
		"id of the instance that the state stands for": {
			func(i *instance.Instance) { i.InstanceID = "another" }, func(m model) types.String { return m.InstanceID }, types.StringValue("id"),
		},
		"owner that the state stands for": {
			func(i *instance.Instance) { i.OwnerID = "another" }, func(m model) types.String { return m.OwnerID }, types.StringValue("owner"),
		},
	} {
		t.Run(story, func(t *testing.T) {
			read := orders()
			test.change(read)
			if got := test.value(modelOf(read, before, types.MapNull(types.StringType))); !got.Equal(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestReadKeepsHowNamesWereWritten(t *testing.T) {
	before := modelOf(orders(), model{}, types.MapNull(types.StringType))
	before.OSImage = types.StringValue("default/debian")
	before.NetworkRef = types.StringValue("vlan")
	read := orders()
	read.NetworkRef = "tenant-acme/vlan"
	m := modelOf(read, before, types.MapNull(types.StringType))
	if got := m.OSImage.ValueString() + " " + m.NetworkRef.ValueString(); got != "default/debian vlan" {
		t.Errorf("written as %q", got)
	}
	read.NetworkRef = "default/vlan"
	if got := modelOf(read, before, types.MapNull(types.StringType)).NetworkRef.ValueString(); got != "default/vlan" {
		t.Errorf("another network is hidden: %q", got)
	}
}

func TestWhatIsNotRecordedIsNull(t *testing.T) {
	m := modelOf(&instance.Instance{Spec: instance.Spec{Namespace: "a", Name: "b"}, OperatorManaged: true}, model{}, types.MapNull(types.StringType))
	for name, isNull := range map[string]bool{
		"engine_version": m.EngineVersion.IsNull(), "port": m.Port.IsNull(), "static_network": m.StaticNetwork.IsNull(),
		"address": m.Address.IsNull(), "connection_uri": m.ConnectionURI.IsNull(), "master_password": m.MasterPassword.IsNull(),
		"ca_cert_pem": m.CACertPEM.IsNull(), "status_reason": m.StatusReason.IsNull(), "vcpu": m.VCPU.IsNull(),
	} {
		if !isNull {
			t.Errorf("%s is not null", name)
		}
	}
}

func TestReadKeepsThePolicyOfALostMachine(t *testing.T) {
	lost := &instance.Instance{Status: "failed", Reason: "VMMissing"}
	before := model{
		ManagePassword: types.BoolValue(true), DeletionProtection: types.BoolValue(true), MasterPassword: types.StringNull(),
	}
	got := modelOf(lost, before, types.MapNull(types.StringType))
	if !got.ManagePassword.ValueBool() || !got.DeletionProtection.ValueBool() || !got.MasterPassword.IsNull() {
		t.Errorf("managed %s, protected %s, password known: %t", got.ManagePassword, got.DeletionProtection, !got.MasterPassword.IsNull())
	}
}

// A delete that was interrupted leaves the credentials Secret for last. What it
// does not tell must not look like a change, or nothing can be planned any
// more, not even the destroy that ends it.
func TestReadKeepsWhatAHalfDeletedInstanceCannotTell(t *testing.T) {
	before := modelOf(orders(), model{}, types.MapNull(types.StringType))
	left := modelOf(&instance.Instance{
		Spec: instance.Spec{Namespace: "tenant-acme", Name: "orders", MasterUsername: "dbadmin"}, Status: "failed", Reason: "VMMissing",
	}, before, types.MapNull(types.StringType))
	for name, values := range map[string][2]attr.Value{
		"instance_class": {before.InstanceClass, left.InstanceClass}, "allocated_storage": {before.AllocatedStorage, left.AllocatedStorage},
		"network_ref": {before.NetworkRef, left.NetworkRef}, "engine_version": {before.EngineVersion, left.EngineVersion},
		"db_name": {before.DBName, left.DBName}, "master_username": {before.MasterUsername, left.MasterUsername}, "port": {before.Port, left.Port},
		"os_image": {before.OSImage, left.OSImage}, "storage_type": {before.StorageType, left.StorageType}, "static_network": {before.StaticNetwork, left.StaticNetwork},
	} {
		if !values[0].Equal(values[1]) {
			t.Errorf("%s was %s and is %s", name, values[0], values[1])
		}
	}
	other := modelOf(&instance.Instance{Spec: instance.Spec{StorageGiB: 20}, Status: "failed", Reason: "VMMissing"}, before, types.MapNull(types.StringType))
	if got := other.AllocatedStorage.ValueInt64(); got != 20 {
		t.Errorf("a volume of 20 GiB that stands is shown with %d", got)
	}
}
