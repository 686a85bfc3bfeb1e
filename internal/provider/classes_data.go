package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// classesData is the data source dbaas_instance_classes.
type classesData struct{ dataSource }

func newClassesData() datasource.DataSource {
	return &classesData{dataSource{new(backend)}}
}

// classesDataModel is the data source dbaas_instance_classes.
type classesDataModel struct {
	Classes map[string]classSize `tfsdk:"classes"`
}

// classSize is the size that a class gives an instance.
type classSize struct {
	VCPU           types.Int64 `tfsdk:"vcpu"`
	MemoryMiB      types.Int64 `tfsdk:"memory_mib"`
	MaxConnections types.Int64 `tfsdk:"max_connections"`
}

// Metadata names the data source.
func (d *classesData) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_instance_classes"
}

// Schema describes the data source dbaas_instance_classes.
func (d *classesData) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The instance classes that this provider block knows: the built-in ones and those of its `instance_classes`. It asks no cluster.",
		Attributes: map[string]schema.Attribute{
			"classes": schema.MapNestedAttribute{
				Computed: true, MarkdownDescription: "The classes by name.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"vcpu":            readNumber("Virtual CPUs."),
					"memory_mib":      readNumber("Memory in MiB (2²⁰ bytes)."),
					"max_connections": readNumber("PostgreSQL's `max_connections`."),
				}},
			},
		},
	}
}

// Read lists the classes.
func (d *classesData) Read(ctx context.Context, _ datasource.ReadRequest, resp *datasource.ReadResponse) {
	if !d.sized(&resp.Diagnostics) {
		return
	}
	m := classesDataModel{Classes: map[string]classSize{}}
	for name, c := range d.classes {
		m.Classes[name] = classSize{types.Int64Value(c.VCPU), types.Int64Value(c.MemoryMiB), types.Int64Value(c.MaxConnections)}
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}
