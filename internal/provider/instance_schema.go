package provider

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// createOnly ends the description of every argument that is settled when the
// instance is created.
const createOnly = " Settled when the instance is created: leaving it out later means *as it is*, and a value that differs from the standing one is refused by the plan."

// Schema describes dbaas_instance.
func (r *instanceResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attributes := map[string]schema.Attribute{}
	maps.Copy(attributes, instanceRequired())
	maps.Copy(attributes, instanceCreateOnly())
	maps.Copy(attributes, instanceGuest())
	maps.Copy(attributes, instanceChangeable())
	maps.Copy(attributes, instanceComputed())
	attributes["timeouts"] = timeouts.Attributes(ctx, timeouts.Opts{
		Create: true, Read: true, Update: true, Delete: true,
		CreateDescription: "How long a create may take until the database serves, as a duration such as `45m`. Default `30m`.",
		ReadDescription:   "How long a read (each refresh) may take. Default `2m`.",
		UpdateDescription: "How long an update may take, including a restart that it needs. Default `45m`.",
		DeleteDescription: "How long a delete may take until every object is gone. Default `20m`.",
	})
	resp.Schema = schema.Schema{
		MarkdownDescription: "A PostgreSQL database in a virtual machine of its own on Harvester.\n\n" +
			"The instance is the VirtualMachine `pg-NAME` with an OS disk, a data disk and two Secrets, all in one namespace and all labelled " +
			"`dbaas.opencloud.wso2.com/instance=NAME`. It is created when PostgreSQL answers over TLS inside the guest, at the address that `address` shows.",
		Attributes: attributes,
	}
}

// IdentitySchema is the instance's place on the cluster.
func (r *instanceResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"namespace": identityschema.StringAttribute{RequiredForImport: true, Description: "Namespace of the instance."},
		"name":      identityschema.StringAttribute{RequiredForImport: true, Description: "Name of the instance, without the prefix pg- of its objects."},
	}}
}

func instanceRequired() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name": schema.StringAttribute{
			Required: true,
			MarkdownDescription: "Name of the instance: a DNS label of at most 52 characters. Its objects are called `pg-NAME` and `pg-NAME-…`. " +
				"Another name means another instance: the old one is destroyed with its data and a new one created, which the plan shows as a replace and which `deletion_protection` refuses. " +
				"For an instance that stands, the name must be known at plan.",
			Validators: []validator.String{text("a DNS label of at most 52 characters", checkName)},
		},
		"instance_class": schema.StringAttribute{
			Required: true,
			MarkdownDescription: "Class of the instance, which sets `vcpu`, `memory_mib` and `max_connections`: " +
				"`db.t3.micro` (1 vCPU, 1 GiB), `db.t3.small` (1, 2), `db.t3.medium` (2, 4), `db.t3.large` (2, 8), `db.t3.xlarge` (4, 16), " +
				"`db.m5.large` (2, 8), `db.m5.xlarge` (4, 16), `db.m5.2xlarge` (8, 32), `db.m5.4xlarge` (16, 64), " +
				"`db.r5.large` (2, 16), `db.r5.xlarge` (4, 32), `db.r5.2xlarge` (8, 64), or one that the provider's `instance_classes` adds. " +
				"Two classes may be of one size." + restarts,
			Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"allocated_storage": schema.Int64Attribute{
			Required: true,
			MarkdownDescription: "Size of the data volume in GiB (2³⁰ bytes), at least 1. The OS disk comes on top of it. " +
				"A larger value grows volume and file system in place: under the running database where the cluster can do that, else with a restart of the virtual machine. A smaller one is refused by the plan: a volume never shrinks.",
			Validators: []validator.Int64{int64validator.Between(1, 1<<20)},
		},
		"network_ref": schema.StringAttribute{
			Required: true,
			MarkdownDescription: "NetworkAttachmentDefinition (VLAN) that the instance's only interface is attached to: `namespace/name`, or `name` for one in the instance's own namespace. " +
				"It must exist when the instance is created; the provider never creates, changes or deletes it. A different value for an instance that stands is refused by the plan.",
			Validators: []validator.String{text(`"namespace/name" or "name"`, checkNetworkRef)},
		},
	}
}

func instanceCreateOnly() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"namespace": schema.StringAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "Namespace of the instance and all its objects. It must exist. Default, at create only: the provider's `namespace`. " +
				"Leaving it out later means *as it is*; another namespace means another instance, as with `name`.",
			Validators: []validator.String{text("a DNS label", checkNamespace)},
		},
		"engine_version": schema.StringAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "Major version of PostgreSQL, `13` to `18`. Default `16`." + createOnly,
			Validators:          []validator.String{stringvalidator.OneOf("13", "14", "15", "16", "17", "18")},
		},
		"db_name": schema.StringAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "Database to create, owned by the master user: `^[a-z_][a-z0-9_]{0,62}$`, not `postgres`, `template0` or `template1`. " +
				"Default: the instance's name with `-` turned to `_`, with `db_` before it where it begins with a digit or is reserved." + createOnly,
			Validators: []validator.String{text("a plain SQL name that PostgreSQL does not use itself", checkDBName)},
		},
		"master_username": schema.StringAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "Role that owns the database and may create roles and databases (it is no superuser): `^[a-z_][a-z0-9_]{0,62}$`, " +
				"not `pg_*`, `postgres`, `postgres_exporter`, `replicator`, `public` or `none`. Default `dbadmin`." + createOnly,
			Validators: []validator.String{text("a plain SQL name that is not reserved", checkUsername)},
		},
		"port": schema.Int64Attribute{
			Optional: true, Computed: true,
			MarkdownDescription: "TCP port that PostgreSQL listens on, 1 to 65535. Default `5432`." + createOnly,
			Validators:          []validator.Int64{int64validator.Between(1, 65535)},
		},
		"os_image": schema.StringAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "VirtualMachineImage of the OS disk, a Debian or Ubuntu cloud image: `namespace/name`, or the object's name or display name in namespace `default`. " +
				"Default `ubuntu-22.04-server-cloudimg-amd64.img`. An image that is still importing is waited for; an absent, failed or ambiguous one is an error before anything is written." + createOnly,
			Validators: []validator.String{text("namespace/name, name or display name of an image", checkImage)},
		},
		"storage_type": schema.StringAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "StorageClass of the data volume. Default `longhorn`. The OS disk uses the class of its image." + createOnly,
			Validators:          []validator.String{text("the name of a StorageClass", checkObjectName)},
		},
		"static_network": schema.SingleNestedAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "A fixed address for a network without DHCP. Default: DHCP." + createOnly,
			Validators:          []validator.Object{gatewayInNetwork{}},
			Attributes:          staticNetworkAttributes(),
		},
	}
}

func staticNetworkAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"address": schema.StringAttribute{
			Required:            true,
			MarkdownDescription: "Address of the instance with the network's prefix length, such as `10.50.0.42/24`. Not the network's own or its broadcast address.",
			Validators:          []validator.String{text("an address with a prefix length", checkHostAddress)},
		},
		"gateway": schema.StringAttribute{
			Required:            true,
			MarkdownDescription: "Default gateway, another address of the same network.",
			Validators:          []validator.String{text("an IP address", checkAddress)},
		},
		"nameservers": schema.ListAttribute{
			ElementType: types.StringType, Required: true,
			MarkdownDescription: "Addresses of the name servers, at least one, asked in this order.",
			Validators: []validator.List{
				listvalidator.SizeAtLeast(1), listvalidator.UniqueValues(),
				listvalidator.ValueStringsAre(text("an IP address", checkAddress)),
			},
		},
		"search_domains": schema.ListAttribute{
			ElementType: types.StringType, Optional: true,
			MarkdownDescription: "Domains that short host names are completed with, in this order. Default: none; leave it out rather than writing an empty list.",
			Validators: []validator.List{
				listvalidator.SizeAtLeast(1), listvalidator.UniqueValues(),
				listvalidator.ValueStringsAre(text("a DNS domain", checkObjectName)),
			},
		},
	}
}

func instanceChangeable() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"manage_master_user_password": schema.BoolAttribute{
			Optional: true, Computed: true, Default: booldefault.StaticBool(false),
			MarkdownDescription: "Keep the generated master password in the credentials Secret only: `master_password` is then null and nothing secret is in state or plan. " +
				"Default `false`: it is in the Secret and in `master_password`. A change takes effect in place, without a restart, and does not change the password.",
		},
		"master_password_wo": schema.StringAttribute{
			Optional: true, Sensitive: true, WriteOnly: true,
			MarkdownDescription: "A master password of your own, 8 to 128 bytes without line breaks: write-only, so it is never in state or plan, and may come from an ephemeral resource. " +
				"Needs Terraform 1.11 or newer. It is set when the instance is created, and again when `master_password_wo_version` changes. Not together with `manage_master_user_password = true` or `password_rotation`.",
			Validators: []validator.String{text("8 to 128 bytes without line breaks", checkPassword)},
		},
		"master_password_wo_version": schema.Int64Attribute{
			Optional: true,
			MarkdownDescription: "Version of `master_password_wo`. Terraform cannot see that a write-only value has changed: another version, also one where there was none, sets the password anew." + restarts +
				" The earlier password works until the new one does. An instance that stands still cannot take a new password.",
			Validators: []validator.Int64{int64validator.AlsoRequires(path.MatchRoot("master_password_wo"))},
		},
		"password_rotation": schema.Int64Attribute{
			Optional: true,
			MarkdownDescription: "Any number; another one draws a new master password. Leaving it out later changes nothing." + restarts +
				" The earlier password works until the new one does. An instance that stands still cannot take a new password.",
			Validators: []validator.Int64{int64validator.ConflictsWith(path.MatchRoot("master_password_wo"))},
		},
		"running": schema.BoolAttribute{
			Optional: true, Computed: true, Default: booldefault.StaticBool(true),
			MarkdownDescription: "Whether the instance runs. Default `true`. `false` shuts the virtual machine down and keeps everything else; `address` and `endpoint` then show their last value. " +
				"A new instance with `false` boots until it was available once, and then stops. Changes of an instance that stands still are written down and reach it with its next start.",
		},
		"deletion_policy": schema.StringAttribute{
			Optional: true, Computed: true, Default: stringdefault.StaticString(policyDelete),
			MarkdownDescription: "What a destroy does with the data: `delete`, the default, or `retain`, which keeps the data volume and the credentials Secret; " +
				"an instance of the same name, created later, takes them over. A change takes effect in place, without a restart.",
			Validators: []validator.String{stringvalidator.OneOf(policyDelete, policyRetain)},
		},
		"tags": schema.MapAttribute{
			ElementType: types.StringType, Optional: true, Computed: true, Default: mapdefault.StaticValue(types.MapValueMust(types.StringType, nil)),
			MarkdownDescription: "Tags, which Harvester shows at the virtual machine: labels `tag.harvesterhci.io/KEY`. They go before the provider's `default_tags`. " +
				"A change takes effect in place, without a restart.",
			Validators: []validator.Map{entries("a tag", checkTag)},
		},
		"deletion_protection": schema.BoolAttribute{
			Optional: true, Computed: true, Default: booldefault.StaticBool(false),
			MarkdownDescription: "Refuse every destroy and replace of the instance, in the plan and again before the first request. Default `false`. " +
				"A change takes effect in place, without a restart; to destroy a protected instance, apply `false` first. An instance that never became available holds no data and is not protected yet.",
		},
	}
}
