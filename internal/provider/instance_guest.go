package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// restarts ends the description of every argument that reaches the guest only
// when its machine starts.
const restarts = " A change takes effect in place and restarts the virtual machine: clients lose their connections for the time of a boot."

// everyNetwork is who may connect when allowed_cidrs says nothing.
func everyNetwork() []string { return []string{"0.0.0.0/0", "::/0"} }

// instanceGuest are the arguments that a boot of the guest applies. An empty
// collection and one that is left out are the same.
func instanceGuest() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"parameters": schema.MapAttribute{
			ElementType: types.StringType, Optional: true, Computed: true, Default: mapdefault.StaticValue(types.MapValueMust(types.StringType, nil)),
			MarkdownDescription: "Settings of `postgresql.conf`, such as `work_mem = \"16MB\"`. They go before what the provider derives from the class. " +
				"Refused is what the provider sets itself or what could lose the data: `listen_addresses`, `port`, `max_connections`, `ssl*`, `password_encryption`, files and directories, " +
				"libraries and commands, archiving and replication, `fsync` and the like. If PostgreSQL does not start with a setting, the apply fails with PostgreSQL's own words and the database " +
				"serves on with the earlier settings." + restarts,
			Validators: []validator.Map{entries("a setting of PostgreSQL that the provider does not set itself", checkParameter), oneSpelling{}},
		},
		"extensions": textSet(nil, elements("an extension of PostgreSQL's contrib package", checkExtension),
			"Extensions to create in the database, and to preload where they need it, such as `pg_stat_statements` or `pgcrypto`. One that is taken out again stays in the database until it is dropped by SQL."+restarts),
		"allowed_cidrs": textSet(everyNetwork(), elements("a network", checkCIDR),
			"Networks whose hosts may connect, always with TLS and a password. Default: `0.0.0.0/0` and `::/0`. An empty set lets nobody in over the network."+restarts),
		"dns_names": textSet(nil, elements("a DNS name", checkDNSName),
			"Names under which clients reach the instance, for the server's certificate, so that `sslmode=verify-full` works with them. The certificate is valid for every address of the instance anyway."+restarts),
		"ssh_public_keys": textSet(nil, elements("a public key as in authorized_keys", checkSSHKey),
			"SSH public keys, each a line as in `authorized_keys`, that may log in to the virtual machine in an emergency, as the user `dbaas`, who may use sudo."+restarts),
		"package_source": schema.SingleNestedAttribute{
			Optional: true,
			MarkdownDescription: "Where the guest finds packages at a site without Internet. Default: the distribution's own mirrors and the PostgreSQL project's. " +
				"A change takes effect in place, without a restart; it is used from the next start on.",
			Validators: []validator.Object{someSource{}},
			Attributes: map[string]schema.Attribute{
				"apt_proxy": schema.StringAttribute{
					Optional: true, Validators: []validator.String{text("an http or https URL", checkSource)},
					MarkdownDescription: "URL of an HTTP proxy for apt. It is readable in the guest: no password belongs into it.",
				},
				"pgdg_mirror": schema.StringAttribute{
					Optional: true, Validators: []validator.String{text("an http or https URL", checkSource)},
					MarkdownDescription: "URL of a mirror of `https://apt.postgresql.org/pub/repos/apt`.",
				},
			},
		},
		"monitoring": instanceMonitoring(),
	}
}

func textSet(otherwise []string, check validator.Set, description string) schema.SetAttribute {
	return schema.SetAttribute{
		ElementType: types.StringType, Optional: true, Computed: true, Default: setdefault.StaticValue(setOf(otherwise)),
		MarkdownDescription: description, Validators: []validator.Set{check},
	}
}

// setOf is a set of texts; no texts make an empty set.
func setOf(values []string) types.Set {
	all := make([]attr.Value, len(values))
	for i, v := range values {
		all[i] = types.StringValue(v)
	}
	return types.SetValueMust(types.StringType, all)
}
