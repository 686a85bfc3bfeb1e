package provider

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/wso2/terraform-provider-dbaas/internal/class"
	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

// This file is the one place where Terraform's values become plain ones and
// back: past it there is no null and no unknown.

// key names the model's instance on the cluster and what is remembered of it.
func (m *model) key() instance.Key {
	return instance.Key{
		Namespace: m.Namespace.ValueString(), Name: m.Name.ValueString(),
		InstanceID: m.InstanceID.ValueString(), OwnerID: m.OwnerID.ValueString(),
	}
}

// spec is the wanted instance of a settled model. Only the configuration has
// the password that is supplied.
func (m *model) spec(ctx context.Context, config model, c class.Class) (instance.Spec, error) {
	static, err := m.static(ctx)
	if err != nil {
		return instance.Spec{}, err
	}
	source, err := m.source(ctx)
	if err != nil {
		return instance.Spec{}, err
	}
	monitoring, err := m.monitoring(ctx)
	if err != nil {
		return instance.Spec{}, err
	}
	return instance.Spec{
		Namespace: m.Namespace.ValueString(), Name: m.Name.ValueString(),
		ClassName: m.InstanceClass.ValueString(), Class: c,
		StorageGiB:     m.AllocatedStorage.ValueInt64(),
		NetworkRef:     qualified(m.Namespace.ValueString(), m.NetworkRef.ValueString()),
		EngineVersion:  m.EngineVersion.ValueString(),
		DBName:         m.DBName.ValueString(),
		MasterUsername: m.MasterUsername.ValueString(),
		Port:           m.Port.ValueInt64(),
		OSImage:        m.OSImage.ValueString(),
		StorageType:    m.StorageType.ValueString(),
		Static:         static,

		Parameters:    textMap(m.Parameters),
		Extensions:    texts(m.Extensions),
		AllowedCIDRs:  networks(m.AllowedCIDRs),
		DNSNames:      texts(m.DNSNames),
		SSHPublicKeys: texts(m.SSHPublicKeys),
		PackageSource: source,
		Monitoring:    monitoring,

		Running:            m.Running.ValueBool(),
		Master:             m.master(config),
		DeletionProtection: m.DeletionProtection.ValueBool(),
		Retain:             m.DeletionPolicy.ValueString() == policyRetain,
		Tags:               textMap(m.TagsAll),
	}, nil
}

// static is the static network of a settled model, nil for DHCP.
func (m *model) static(ctx context.Context) (*cloudinit.Static, error) {
	if m.StaticNetwork.IsNull() {
		return nil, nil //nolint:nilnil // nil means DHCP
	}
	var wanted staticNetwork
	if diags := m.StaticNetwork.As(ctx, &wanted, basetypes.ObjectAsOptions{}); diags.HasError() {
		return nil, wrongType("static_network", diags)
	}
	address, err := netip.ParsePrefix(wanted.Address.ValueString())
	if err != nil {
		return nil, &instance.FieldError{Field: instance.FieldStaticNetwork, Err: err}
	}
	gateway, err := netip.ParseAddr(wanted.Gateway.ValueString())
	if err != nil {
		return nil, &instance.FieldError{Field: instance.FieldStaticNetwork, Err: err}
	}
	result := &cloudinit.Static{Address: address, Gateway: gateway}
	for _, element := range wanted.Nameservers.Elements() {
		addr, err := netip.ParseAddr(element.(types.String).ValueString())
		if err != nil {
			return nil, &instance.FieldError{Field: instance.FieldStaticNetwork, Err: err}
		}
		result.Nameservers = append(result.Nameservers, addr)
	}
	for _, element := range wanted.SearchDomains.Elements() {
		result.SearchDomains = append(result.SearchDomains, element.(types.String).ValueString())
	}
	return result, nil
}

// modelOf is the state of an instance that was read. From what Terraform held
// before, it keeps what the cluster does not have: timeouts, the spelling of
// names, and what was lost there on purpose.
func modelOf(in *instance.Instance, before model, defaultTags types.Map) model {
	m := model{
		Name: types.StringValue(in.Name), Namespace: types.StringValue(in.Namespace),
		InstanceClass:    presence(in.ClassName),
		AllocatedStorage: number(in.StorageGiB),
		NetworkRef:       presence(in.NetworkRef),
		EngineVersion:    presence(in.EngineVersion),
		DBName:           presence(in.DBName),
		MasterUsername:   presence(in.MasterUsername),
		Port:             number(in.Port),
		OSImage:          presence(in.OSImage),
		StorageType:      presence(in.StorageType),
		StaticNetwork:    staticOf(in.Static),

		Parameters:    mapOf(in.Parameters),
		Extensions:    setOf(in.Extensions),
		AllowedCIDRs:  networksOf(in.AllowedCIDRs),
		DNSNames:      setOf(in.DNSNames),
		SSHPublicKeys: setOf(in.SSHPublicKeys),
		PackageSource: sourceOf(in.PackageSource),
		Monitoring:    monitoringOf(in.Monitoring),

		Running:            types.BoolValue(in.Running),
		ManagePassword:     types.BoolValue(in.Master.Mode == instance.PasswordManaged),
		SuppliedPassword:   types.StringNull(),
		PasswordVersion:    numberOf(in.Master.Version),
		PasswordRotation:   numberOf(in.Master.Rotation),
		DeletionProtection: types.BoolValue(in.DeletionProtection),
		DeletionPolicy:     policyOf(in.Retain),
		Tags:               ownTags(in.Tags, before, defaultTags),
		TagsAll:            mapOf(in.Tags),
		Timeouts:           before.Timeouts,

		ID:         types.StringValue(in.Key().String()),
		InstanceID: firstOf(before.InstanceID, in.InstanceID),
		OwnerID:    firstOf(before.OwnerID, in.OwnerID),
		Status:     presence(in.Status), StatusReason: presence(in.Reason),

		VCPU: number(in.VCPU), MemoryMiB: number(in.MemoryMiB), MaxConnections: number(in.MaxConnections),
		EngineVersionActual: presence(in.EngineVersionActual),
		MasterUserSecret:    secretOf(in),
		Resources:           resourcesOf(in),
	}
	if !in.GuestKnown {
		m.keepGuest(before)
	}
	if !in.GuestKnown && !in.OperatorManaged {
		// Whether there are objects for metrics is asked only where the guest's document says so.
		keepKnown(&m.Resources, before.Resources)
	}
	if !in.MachineKnown {
		m.keepMachine(before)
	}
	m.setGrafanaURL()
	m.keepSpelling(before)
	m.setConnection(in, before)
	m.setCredentials(in, before)
	return m
}

// keepSpelling keeps how the user wrote a name that means what stands.
func (m *model) keepSpelling(before model) {
	if sameNetwork(m.Namespace.ValueString(), before.NetworkRef.ValueString(), m.NetworkRef.ValueString()) {
		m.NetworkRef = before.NetworkRef
	}
	if sameImage(before.OSImage.ValueString(), m.OSImage.ValueString()) {
		m.OSImage = before.OSImage
	}
}

// setConnection fills in how to reach the database. A stopped instance keeps
// the last address: it usually comes back with it.
func (m *model) setConnection(in *instance.Instance, before model) {
	at := in.Connection()
	if at.Host == "" && slices.Contains([]string{"stopping", "stopped", "starting"}, in.Status) {
		at.Host = before.Address.ValueString()
		if at.Host == "" {
			at.Host = in.LastAddress
		}
	}
	m.Address, m.Endpoint = presence(at.Host), presence(at.Endpoint())
	m.ConnectionURI, m.JDBCURL = presence(at.URI()), presence(at.JDBC())
}

// setCredentials fills in CA and password. What somebody removed from the
// Secret after the instance was available is still true, and stays.
func (m *model) setCredentials(in *instance.Instance, before model) {
	m.CACertPEM, m.CAValidUntil = before.CACertPEM, before.CAValidUntil
	if in.CACertPEM != "" {
		m.CACertPEM = types.StringValue(in.CACertPEM)
		m.CAValidUntil = types.StringValue(in.CAValidUntil.UTC().Format(time.RFC3339))
	}
	switch {
	case !generated(in, before):
		m.MasterPassword = types.StringNull()
	case in.MasterPassword != "":
		m.MasterPassword = types.StringValue(in.MasterPassword)
	default:
		m.MasterPassword = before.MasterPassword
	}
	for _, v := range []*types.String{&m.CACertPEM, &m.CAValidUntil, &m.MasterPassword} {
		if v.IsUnknown() {
			*v = types.StringNull()
		}
	}
}

func staticOf(static *cloudinit.Static) types.Object {
	if static == nil {
		return types.ObjectNull(staticNetworkTypes())
	}
	var nameservers []string
	for _, addr := range static.Nameservers {
		nameservers = append(nameservers, addr.String())
	}
	gateway := types.StringNull()
	if static.Gateway.IsValid() {
		gateway = types.StringValue(static.Gateway.String())
	}
	return types.ObjectValueMust(staticNetworkTypes(), map[string]attr.Value{
		"address":        types.StringValue(static.Address.String()),
		"gateway":        gateway,
		"nameservers":    listOf(nameservers),
		"search_domains": listOf(static.SearchDomains),
	})
}

func secretOf(in *instance.Instance) types.Object {
	return types.ObjectValueMust(masterUserSecretTypes(), map[string]attr.Value{
		"name":      presence(in.Names.Credentials),
		"namespace": types.StringValue(in.Namespace),
		"status":    presence(string(in.SecretStatus)),
		"reason":    presence(in.SecretReason),
	})
}

func resourcesOf(in *instance.Instance) types.Object {
	return types.ObjectValueMust(resourcesTypes(), map[string]attr.Value{
		"vm_name":                 presence(in.Names.VM),
		"os_volume_name":          presence(in.Names.OSVolume),
		"data_volume_name":        presence(in.Names.DataVolume),
		"credentials_secret_name": presence(in.Names.Credentials),
		"cloudinit_secret_name":   presence(in.Names.CloudInit),
		"metrics_service_name":    presence(in.Names.MetricsService),
		"service_monitor_name":    presence(in.Names.ServiceMonitor),
	})
}

// presence is a string whose emptiness means that there is none.
func presence(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}

// number is a number whose zero means that there is none.
func number(n int64) types.Int64 {
	if n == 0 {
		return types.Int64Null()
	}
	return types.Int64Value(n)
}

// listOf is a list whose emptiness means that there is none.
func listOf(values []string) types.List {
	if len(values) == 0 {
		return types.ListNull(types.StringType)
	}
	elements := make([]attr.Value, len(values))
	for i, v := range values {
		elements[i] = types.StringValue(v)
	}
	return types.ListValueMust(types.StringType, elements)
}

// firstOf keeps what Terraform remembers, if it remembers anything.
func firstOf(before types.String, read string) types.String {
	if before.ValueString() != "" {
		return before
	}
	return presence(read)
}
