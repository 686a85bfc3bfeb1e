package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

// instanceData is the data source dbaas_instance.
type instanceData struct{ dataSource }

func newInstanceData() datasource.DataSource {
	return &instanceData{dataSource{new(backend)}}
}

// instanceDataModel is the data source dbaas_instance.
type instanceDataModel struct {
	Name      types.String `tfsdk:"name"`
	Namespace types.String `tfsdk:"namespace"`

	ID                  types.String `tfsdk:"id"`
	InstanceID          types.String `tfsdk:"instance_id"`
	OperatorManaged     types.Bool   `tfsdk:"operator_managed"`
	InstanceClass       types.String `tfsdk:"instance_class"`
	VCPU                types.Int64  `tfsdk:"vcpu"`
	MemoryMiB           types.Int64  `tfsdk:"memory_mib"`
	MaxConnections      types.Int64  `tfsdk:"max_connections"`
	AllocatedStorage    types.Int64  `tfsdk:"allocated_storage"`
	StorageType         types.String `tfsdk:"storage_type"`
	OSImage             types.String `tfsdk:"os_image"`
	NetworkRef          types.String `tfsdk:"network_ref"`
	EngineVersion       types.String `tfsdk:"engine_version"`
	EngineVersionActual types.String `tfsdk:"engine_version_actual"`
	DBName              types.String `tfsdk:"db_name"`
	MasterUsername      types.String `tfsdk:"master_username"`
	Port                types.Int64  `tfsdk:"port"`
	Parameters          types.Map    `tfsdk:"parameters"`
	Extensions          types.Set    `tfsdk:"extensions"`
	AllowedCIDRs        types.Set    `tfsdk:"allowed_cidrs"`
	DNSNames            types.Set    `tfsdk:"dns_names"`
	Running             types.Bool   `tfsdk:"running"`
	DeletionProtection  types.Bool   `tfsdk:"deletion_protection"`
	DeletionPolicy      types.String `tfsdk:"deletion_policy"`
	Tags                types.Map    `tfsdk:"tags"`
	Status              types.String `tfsdk:"status"`
	StatusReason        types.String `tfsdk:"status_reason"`
	StatusDetail        types.String `tfsdk:"status_detail"`
	Address             types.String `tfsdk:"address"`
	Endpoint            types.String `tfsdk:"endpoint"`
	ConnectionURI       types.String `tfsdk:"connection_uri"`
	JDBCURL             types.String `tfsdk:"jdbc_url"`
	CACertPEM           types.String `tfsdk:"ca_cert_pem"`
	CAValidUntil        types.String `tfsdk:"ca_valid_until"`
	Monitoring          types.Object `tfsdk:"monitoring"`
	GrafanaURL          types.String `tfsdk:"grafana_url"`
	MasterUserSecret    types.Object `tfsdk:"master_user_secret"`
	Resources           types.Object `tfsdk:"resources"`
}

// Metadata names the data source.
func (d *instanceData) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_instance"
}

// Schema describes the data source dbaas_instance.
func (d *instanceData) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "One instance, whoever made it: this provider, in this or another state, or the DBaaS operator. It returns no secret; " +
			"`ephemeral.dbaas_credentials` does. An instance that does not exist is an error. What an instance of the operator does not record is null.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Required: true, Validators: []validator.String{text("a DNS label of at most 52 characters", checkName)},
				MarkdownDescription: "Name of the instance, without the prefix `pg-` of its objects.",
			},
			"namespace": schema.StringAttribute{
				Optional: true, Computed: true, Validators: []validator.String{text("a DNS label", checkNamespace)},
				MarkdownDescription: "Namespace of the instance. Default: the provider's.",
			},
			"id":                    readText("`namespace/name`."),
			"instance_id":           readText("UUID of the instance; null for one of the operator."),
			"operator_managed":      readFlag("Whether the DBaaS operator manages the instance."),
			"instance_class":        readText("Class of the instance."),
			"vcpu":                  readNumber("Virtual CPUs."),
			"memory_mib":            readNumber("Memory in MiB (2²⁰ bytes)."),
			"max_connections":       readNumber("PostgreSQL's `max_connections`."),
			"allocated_storage":     readNumber("Size of the data volume in GiB (2³⁰ bytes)."),
			"storage_type":          readText("StorageClass of the data volume."),
			"os_image":              readText("Image of the OS disk, as it was written."),
			"network_ref":           readText("The NetworkAttachmentDefinition, `namespace/name`."),
			"engine_version":        readText("Major version of PostgreSQL that was asked for."),
			"engine_version_actual": readText("Major version of PostgreSQL that the guest became ready with; null until then."),
			"db_name":               readText("The database."),
			"master_username":       readText("The master user."),
			"port":                  readNumber("TCP port of PostgreSQL."),
			"parameters":            readMap("The owner's settings of PostgreSQL."),
			"extensions":            readTexts("Extensions of the database."),
			"allowed_cidrs":         readTexts("Networks that may connect."),
			"dns_names":             readTexts("Names in the server's certificate."),
			"running":               readFlag("Whether the instance is meant to run."),
			"deletion_protection":   readFlag("Whether a destroy is refused."),
			"deletion_policy":       readText("What a destroy does with the data: `delete` or `retain`."),
			"tags":                  readMap("All tags of the instance."),
			"status":                readText("As `status` of the resource."),
			"status_reason":         readText("As `status_reason` of the resource."),
			"status_detail":         readText("A sentence about what was last seen of the instance."),
			"address":               readText("IP address; of an instance that is stopped, the last one."),
			"endpoint":              readText("`address:port`, an IPv6 address in brackets."),
			"connection_uri":        readText("`postgresql://` URI with user and `sslmode=verify-full`, without the password."),
			"jdbc_url":              readText("`jdbc:postgresql://` URL with `sslmode=verify-full`, without user and password."),
			"ca_cert_pem":           readText("Certificate, PEM, to verify the server with."),
			"ca_valid_until":        readText("When the certificate authority ends, RFC 3339, UTC."),
			"monitoring": schema.SingleNestedAttribute{
				Computed: true, MarkdownDescription: "How the instance is monitored; null where it is not.",
				Attributes: map[string]schema.Attribute{
					"scrape_interval":  readText("How often Prometheus reads the metrics, as a duration such as `15s`."),
					"grafana_base_url": readText("Where Grafana begins; null if it was not said."),
					"allowed_cidrs":    readTexts("Networks that may read the metrics."),
				},
			},
			"grafana_url": readText("The instance's dashboard in Grafana; null without one."),
			"master_user_secret": schema.SingleNestedAttribute{
				Computed: true, MarkdownDescription: "The Secret with the credentials.",
				Attributes: map[string]schema.Attribute{
					"name": readText("Name of the Secret."), "namespace": readText("Namespace of the Secret."),
					"status": readText("`active` or `impaired`."), "reason": readText("What an impaired Secret lacks."),
				},
			},
			"resources": schema.SingleNestedAttribute{
				Computed: true, MarkdownDescription: "Names of the objects on the cluster.",
				Attributes: map[string]schema.Attribute{
					"vm_name": readText("The VirtualMachine."), "os_volume_name": readText("The OS disk's claim."),
					"data_volume_name": readText("The data disk's claim."), "credentials_secret_name": readText("The Secret with the credentials."),
					"cloudinit_secret_name": readText("The Secret with the guest's configuration."),
					"metrics_service_name":  readText("The Service of the metrics exporter; null while there is none."),
					"service_monitor_name":  readText("The ServiceMonitor; null while there is none."),
				},
			},
		},
	}
}

// Read reads the instance.
func (d *instanceData) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var config instanceDataModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() || !d.located(&resp.Diagnostics) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, defaultRead)
	defer cancel()
	key := d.place(config.Namespace, config.Name)
	in, err := d.store.Get(ctx, key)
	if err != nil {
		report(&resp.Diagnostics, "Cannot read instance "+key.String(), absent(err, key))
		return
	}
	warn(&resp.Diagnostics, "Instance "+key.String(), in.Warnings)
	resp.Diagnostics.Append(resp.State.Set(ctx, instanceDataOf(in))...)
}

func instanceDataOf(in *instance.Instance) instanceDataModel {
	m := modelOf(in, model{}, types.Map{})
	return instanceDataModel{
		Name: m.Name, Namespace: m.Namespace, ID: m.ID, InstanceID: m.InstanceID, OperatorManaged: types.BoolValue(in.OperatorManaged),
		InstanceClass: m.InstanceClass, VCPU: m.VCPU, MemoryMiB: m.MemoryMiB, MaxConnections: m.MaxConnections,
		AllocatedStorage: m.AllocatedStorage, StorageType: m.StorageType, OSImage: m.OSImage, NetworkRef: m.NetworkRef,
		EngineVersion: m.EngineVersion, EngineVersionActual: m.EngineVersionActual, DBName: m.DBName, MasterUsername: m.MasterUsername, Port: m.Port,
		Parameters: m.Parameters, Extensions: m.Extensions, AllowedCIDRs: m.AllowedCIDRs, DNSNames: m.DNSNames,
		Running: m.Running, DeletionProtection: m.DeletionProtection, DeletionPolicy: m.DeletionPolicy, Tags: m.TagsAll,
		Status: m.Status, StatusReason: m.StatusReason, StatusDetail: presence(in.Detail),
		Address: m.Address, Endpoint: m.Endpoint, ConnectionURI: m.ConnectionURI, JDBCURL: m.JDBCURL,
		CACertPEM: m.CACertPEM, CAValidUntil: m.CAValidUntil, Monitoring: m.Monitoring, GrafanaURL: m.GrafanaURL, MasterUserSecret: m.MasterUserSecret, Resources: m.Resources,
	}
}
