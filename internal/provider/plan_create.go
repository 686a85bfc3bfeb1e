package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// fillDefaults settles the arguments that the configuration leaves out, at
// create only. What is written but not known stays unknown, and so does what
// follows from it.
func (m *model) fillDefaults(config model, namespace string) {
	fill(&m.Namespace, config.Namespace, namespace)
	fill(&m.EngineVersion, config.EngineVersion, "16")
	fill(&m.MasterUsername, config.MasterUsername, "dbadmin")
	fill(&m.OSImage, config.OSImage, "ubuntu-22.04-server-cloudimg-amd64.img")
	fill(&m.StorageType, config.StorageType, "longhorn")
	if config.DBName.IsNull() && !m.Name.IsUnknown() {
		m.DBName = types.StringValue(defaultDBName(m.Name.ValueString()))
	}
	if config.Port.IsNull() {
		m.Port = types.Int64Value(5432)
	}
	if config.StaticNetwork.IsNull() {
		m.StaticNetwork = types.ObjectNull(staticNetworkTypes())
	}
}

// fill sets an argument that was left out to its default, if that is known.
func fill(planned *types.String, written types.String, otherwise string) {
	if written.IsNull() && otherwise != "" {
		*planned = types.StringValue(otherwise)
	}
}
