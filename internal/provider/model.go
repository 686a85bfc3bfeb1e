package provider

import (
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// model is dbaas_instance as Terraform has it in configuration, plan and state.
type model struct {
	Name             types.String `tfsdk:"name"`
	InstanceClass    types.String `tfsdk:"instance_class"`
	AllocatedStorage types.Int64  `tfsdk:"allocated_storage"`
	NetworkRef       types.String `tfsdk:"network_ref"`

	Namespace      types.String `tfsdk:"namespace"`
	EngineVersion  types.String `tfsdk:"engine_version"`
	DBName         types.String `tfsdk:"db_name"`
	MasterUsername types.String `tfsdk:"master_username"`
	Port           types.Int64  `tfsdk:"port"`
	OSImage        types.String `tfsdk:"os_image"`
	StorageType    types.String `tfsdk:"storage_type"`
	StaticNetwork  types.Object `tfsdk:"static_network"`

	Parameters    types.Map    `tfsdk:"parameters"`
	Extensions    types.Set    `tfsdk:"extensions"`
	AllowedCIDRs  types.Set    `tfsdk:"allowed_cidrs"`
	DNSNames      types.Set    `tfsdk:"dns_names"`
	SSHPublicKeys types.Set    `tfsdk:"ssh_public_keys"`
	PackageSource types.Object `tfsdk:"package_source"`
	Monitoring    types.Object `tfsdk:"monitoring"`

	Running            types.Bool     `tfsdk:"running"`
	ManagePassword     types.Bool     `tfsdk:"manage_master_user_password"`
	SuppliedPassword   types.String   `tfsdk:"master_password_wo"` // in the configuration only
	PasswordVersion    types.Int64    `tfsdk:"master_password_wo_version"`
	PasswordRotation   types.Int64    `tfsdk:"password_rotation"`
	DeletionProtection types.Bool     `tfsdk:"deletion_protection"`
	DeletionPolicy     types.String   `tfsdk:"deletion_policy"`
	Tags               types.Map      `tfsdk:"tags"`
	Timeouts           timeouts.Value `tfsdk:"timeouts"`

	ID                  types.String `tfsdk:"id"`
	InstanceID          types.String `tfsdk:"instance_id"`
	OwnerID             types.String `tfsdk:"owner_id"`
	Status              types.String `tfsdk:"status"`
	StatusReason        types.String `tfsdk:"status_reason"`
	Address             types.String `tfsdk:"address"`
	Endpoint            types.String `tfsdk:"endpoint"`
	ConnectionURI       types.String `tfsdk:"connection_uri"`
	JDBCURL             types.String `tfsdk:"jdbc_url"`
	CACertPEM           types.String `tfsdk:"ca_cert_pem"`
	CAValidUntil        types.String `tfsdk:"ca_valid_until"`
	MasterPassword      types.String `tfsdk:"master_password"`
	MasterUserSecret    types.Object `tfsdk:"master_user_secret"`
	VCPU                types.Int64  `tfsdk:"vcpu"`
	MemoryMiB           types.Int64  `tfsdk:"memory_mib"`
	MaxConnections      types.Int64  `tfsdk:"max_connections"`
	EngineVersionActual types.String `tfsdk:"engine_version_actual"`
	TagsAll             types.Map    `tfsdk:"tags_all"`
	GrafanaURL          types.String `tfsdk:"grafana_url"`
	Resources           types.Object `tfsdk:"resources"`
}

// staticNetwork is the object static_network.
type staticNetwork struct {
	Address       types.String `tfsdk:"address"`
	Gateway       types.String `tfsdk:"gateway"`
	Nameservers   types.List   `tfsdk:"nameservers"`
	SearchDomains types.List   `tfsdk:"search_domains"`
}

func staticNetworkTypes() map[string]attr.Type {
	list := types.ListType{ElemType: types.StringType}
	return map[string]attr.Type{"address": types.StringType, "gateway": types.StringType, "nameservers": list, "search_domains": list}
}

// packageSource is the object package_source.
type packageSource struct {
	APTProxy   types.String `tfsdk:"apt_proxy"`
	PGDGMirror types.String `tfsdk:"pgdg_mirror"`
}

func packageSourceTypes() map[string]attr.Type { return stringTypes("apt_proxy", "pgdg_mirror") }

func masterUserSecretTypes() map[string]attr.Type {
	return stringTypes("name", "namespace", "status", "reason")
}

func resourcesTypes() map[string]attr.Type {
	return stringTypes("vm_name", "os_volume_name", "data_volume_name", "credentials_secret_name",
		"cloudinit_secret_name", "metrics_service_name", "service_monitor_name")
}

func stringTypes(names ...string) map[string]attr.Type {
	result := make(map[string]attr.Type, len(names))
	for _, name := range names {
		result[name] = types.StringType
	}
	return result
}

// settled says whether every argument of the instance is known.
func (m *model) settled() bool {
	for _, v := range []attr.Value{
		m.Name, m.Namespace, m.InstanceClass, m.AllocatedStorage, m.NetworkRef, m.EngineVersion, m.DBName,
		m.MasterUsername, m.Port, m.OSImage, m.StorageType, m.Running, m.ManagePassword, m.DeletionProtection, m.DeletionPolicy,
		m.Parameters, m.Extensions, m.AllowedCIDRs, m.DNSNames, m.SSHPublicKeys, m.TagsAll,
	} {
		if v.IsNull() || !wholly(v) {
			return false
		}
	}
	return wholly(m.StaticNetwork) && wholly(m.PackageSource) && wholly(m.Monitoring) && wholly(m.PasswordVersion) && wholly(m.PasswordRotation)
}

// wholly says whether a value and all in it is known.
func wholly(v attr.Value) bool {
	if v.IsUnknown() {
		return false
	}
	switch v := v.(type) {
	case types.Object:
		for _, part := range v.Attributes() {
			if partly(part) {
				return false
			}
		}
	case types.List:
		return !slices.ContainsFunc(v.Elements(), partly)
	case types.Set:
		return !slices.ContainsFunc(v.Elements(), partly)
	case types.Map:
		for _, part := range v.Elements() {
			if partly(part) {
				return false
			}
		}
	}
	return true
}

func partly(v attr.Value) bool { return !wholly(v) }
