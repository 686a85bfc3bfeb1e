package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

// dataSource is what all data sources share.
type dataSource struct{ *backend }

// Configure takes the provider's backend.
func (d *dataSource) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	if back, ok := req.ProviderData.(*backend); ok {
		d.backend = back
	}
}

// Attributes of data sources that are only read.
func readText(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

func readNumber(description string) schema.Int64Attribute {
	return schema.Int64Attribute{Computed: true, MarkdownDescription: description}
}

func readFlag(description string) schema.BoolAttribute {
	return schema.BoolAttribute{Computed: true, MarkdownDescription: description}
}

func readTexts(description string) schema.SetAttribute {
	return schema.SetAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: description}
}

func readMap(description string) schema.MapAttribute {
	return schema.MapAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: description}
}

// absent is the error of a data source that was told to find something that is
// not there.
func absent(err error, key instance.Key) error {
	if !errors.Is(err, instance.ErrNotFound) {
		return err
	}
	return &instance.RefusalError{
		Err:    fmt.Errorf("read instance %s: neither its virtual machine pg-%s nor a volume or Secret of it exists in the namespace", key, key.Name),
		Advice: "Correct name or namespace. An instance that the same run creates needs a reference to its dbaas_instance, or depends_on.",
	}
}
