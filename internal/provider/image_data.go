package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// imageData is the data source dbaas_image.
type imageData struct{ dataSource }

func newImageData() datasource.DataSource {
	return &imageData{dataSource{new(backend)}}
}

// imageDataModel is the data source dbaas_image.
type imageDataModel struct {
	OSImage          types.String `tfsdk:"os_image"`
	ID               types.String `tfsdk:"id"`
	DisplayName      types.String `tfsdk:"display_name"`
	StorageClass     types.String `tfsdk:"storage_class"`
	VirtualSizeBytes types.Int64  `tfsdk:"virtual_size_bytes"`
	OSDiskGiB        types.Int64  `tfsdk:"os_disk_gib"`
}

// Metadata names the data source.
func (d *imageData) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_image"
}

// Schema describes the data source dbaas_image.
func (d *imageData) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "One image of Harvester that an instance can be made from. An image that does not exist, whose name is ambiguous, or that was not imported yet is an error that says which images there are.",
		Attributes: map[string]schema.Attribute{
			"os_image": schema.StringAttribute{
				Required: true, Validators: []validator.String{text("an image", checkImage)},
				MarkdownDescription: "The image, as `os_image` of the resource: `namespace/name`, or a VirtualMachineImage's name or display name in namespace `default`.",
			},
			"id":                 readText("`namespace/name` of the VirtualMachineImage, which fits `os_image`."),
			"display_name":       readText("Display name."),
			"storage_class":      readText("StorageClass that clones the image."),
			"virtual_size_bytes": readNumber("Size of the disk that the image holds, in bytes."),
			"os_disk_gib":        readNumber("Size of an instance's OS disk made from it, in GiB (2³⁰ bytes)."),
		},
	}
}

// Read resolves the image.
func (d *imageData) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m imageDataModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() || !d.located(&resp.Diagnostics) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, defaultRead)
	defer cancel()
	found, err := d.store.Image(ctx, m.OSImage.ValueString())
	if err != nil {
		report(&resp.Diagnostics, "Cannot use image "+m.OSImage.ValueString(), err)
		return
	}
	m.ID, m.DisplayName, m.StorageClass = types.StringValue(found.ID), presence(found.DisplayName), types.StringValue(found.StorageClass)
	m.VirtualSizeBytes, m.OSDiskGiB = types.Int64Value(found.VirtualSize), types.Int64Value(found.DiskGiB)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}
