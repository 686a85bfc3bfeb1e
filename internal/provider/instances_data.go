package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

// instancesData is the data source dbaas_instances.
type instancesData struct{ dataSource }

func newInstancesData() datasource.DataSource {
	return &instancesData{dataSource{new(backend)}}
}

// instancesDataModel is the data source dbaas_instances.
type instancesDataModel struct {
	Namespace     types.String      `tfsdk:"namespace"`
	LabelSelector types.String      `tfsdk:"label_selector"`
	Status        types.String      `tfsdk:"status"`
	Instances     []instanceSummary `tfsdk:"instances"`
}

// instanceSummary is one of the instances that were found.
type instanceSummary struct {
	ID               types.String `tfsdk:"id"`
	Namespace        types.String `tfsdk:"namespace"`
	Name             types.String `tfsdk:"name"`
	InstanceID       types.String `tfsdk:"instance_id"`
	OperatorManaged  types.Bool   `tfsdk:"operator_managed"`
	InstanceClass    types.String `tfsdk:"instance_class"`
	AllocatedStorage types.Int64  `tfsdk:"allocated_storage"`
	EngineVersion    types.String `tfsdk:"engine_version"`
	Status           types.String `tfsdk:"status"`
	StatusReason     types.String `tfsdk:"status_reason"`
	Address          types.String `tfsdk:"address"`
	Endpoint         types.String `tfsdk:"endpoint"`
	Tags             types.Map    `tfsdk:"tags"`
}

// Metadata names the data source.
func (d *instancesData) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_instances"
}

// Schema describes the data source dbaas_instances.
func (d *instancesData) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The instances of a namespace whose virtual machine stands, whoever made them, sorted by name. It returns no secret. None found is an empty list.",
		Attributes: map[string]schema.Attribute{
			"namespace": schema.StringAttribute{
				Optional: true, Computed: true, Validators: []validator.String{text("a DNS label", checkNamespace)},
				MarkdownDescription: "Namespace to look in. Default: the provider's.",
			},
			"label_selector": schema.StringAttribute{
				Optional: true, Validators: []validator.String{text("a label selector", checkSelector)},
				MarkdownDescription: "Only instances whose VirtualMachine has these labels, in the syntax of `kubectl get -l`. A tag is the label `tag.harvesterhci.io/KEY`.",
			},
			"status": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf(instance.Statuses()...)},
				MarkdownDescription: "Only instances with this status, one of those of the resource's `status`.",
			},
			"instances": schema.ListNestedAttribute{
				Computed: true, MarkdownDescription: "What was found.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"id":                readText("`namespace/name`."),
					"namespace":         readText("Namespace of the instance."),
					"name":              readText("Name of the instance."),
					"instance_id":       readText("UUID of the instance; null for one of the operator."),
					"operator_managed":  readFlag("Whether the DBaaS operator manages the instance."),
					"instance_class":    readText("Class of the instance."),
					"allocated_storage": readNumber("Size of the data volume in GiB (2³⁰ bytes)."),
					"engine_version":    readText("Major version of PostgreSQL that was asked for."),
					"status":            readText("As `status` of the resource."),
					"status_reason":     readText("As `status_reason` of the resource."),
					"address":           readText("IP address; of an instance that is stopped, the last one."),
					"endpoint":          readText("`address:port`, an IPv6 address in brackets."),
					"tags":              readMap("All tags of the instance."),
				}},
			},
		},
	}
}

func checkSelector(selector string) error {
	if err := instance.CheckSelector(selector); err != nil {
		return fmt.Errorf("%q is not a label selector such as \"team=payments,env!=test\": %w", selector, err)
	}
	return nil
}

// Read lists the instances.
func (d *instancesData) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m instancesDataModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() || !d.located(&resp.Diagnostics) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, defaultRead)
	defer cancel()
	namespace := d.place(m.Namespace, types.StringNull()).Namespace
	found, err := d.store.List(ctx, instance.Filter{
		Namespace: namespace, Selector: m.LabelSelector.ValueString(), Status: m.Status.ValueString(),
	})
	if err != nil {
		report(&resp.Diagnostics, "Cannot read the instances of namespace "+namespace, err)
		return
	}
	m.Namespace, m.Instances = types.StringValue(namespace), []instanceSummary{}
	for _, in := range found {
		one := instanceDataOf(in)
		m.Instances = append(m.Instances, instanceSummary{
			ID: one.ID, Namespace: one.Namespace, Name: one.Name, InstanceID: one.InstanceID, OperatorManaged: one.OperatorManaged,
			InstanceClass: one.InstanceClass, AllocatedStorage: one.AllocatedStorage, EngineVersion: one.EngineVersion,
			Status: one.Status, StatusReason: one.StatusReason, Address: one.Address, Endpoint: one.Endpoint, Tags: one.Tags,
		})
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}
