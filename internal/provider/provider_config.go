package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/wso2/terraform-provider-dbaas/internal/class"
	"github.com/wso2/terraform-provider-dbaas/internal/cluster"
)

// providerModel is the provider block.
type providerModel struct {
	ConfigPath           types.String `tfsdk:"config_path"`
	ConfigPaths          types.List   `tfsdk:"config_paths"`
	Kubeconfig           types.String `tfsdk:"kubeconfig"`
	ConfigContext        types.String `tfsdk:"config_context"`
	Host                 types.String `tfsdk:"host"`
	Token                types.String `tfsdk:"token"`
	ClientCertificate    types.String `tfsdk:"client_certificate"`
	ClientKey            types.String `tfsdk:"client_key"`
	ClusterCACertificate types.String `tfsdk:"cluster_ca_certificate"`
	TLSServerName        types.String `tfsdk:"tls_server_name"`
	Insecure             types.Bool   `tfsdk:"insecure"`
	ProxyURL             types.String `tfsdk:"proxy_url"`
	Namespace            types.String `tfsdk:"namespace"`
	InstanceClasses      types.Map    `tfsdk:"instance_classes"`
	DefaultTags          types.Map    `tfsdk:"default_tags"`
}

// addedClass is one element of instance_classes.
type addedClass struct {
	CPU            int64 `tfsdk:"cpu"`
	MemoryMiB      int64 `tfsdk:"memory_mib"`
	MaxConnections int64 `tfsdk:"max_connections"`
}

// connectionKnown says whether everything that the connection needs is known.
func (m *providerModel) connectionKnown() bool {
	for _, v := range []attr.Value{
		m.ConfigPath, m.ConfigPaths, m.Kubeconfig, m.ConfigContext, m.Host, m.Token, m.ClientCertificate, m.ClientKey,
		m.ClusterCACertificate, m.TLSServerName, m.Insecure, m.ProxyURL, m.Namespace,
	} {
		if !wholly(v) {
			return false
		}
	}
	return true
}

func (m *providerModel) connection() cluster.Config {
	var paths []string
	if path := m.ConfigPath.ValueString(); path != "" {
		paths = append(paths, path)
	}
	for _, path := range m.ConfigPaths.Elements() {
		paths = append(paths, path.(types.String).ValueString())
	}
	return cluster.Config{
		Paths:             paths,
		Content:           m.Kubeconfig.ValueString(),
		Context:           m.ConfigContext.ValueString(),
		Host:              m.Host.ValueString(),
		Token:             m.Token.ValueString(),
		ClientCertificate: m.ClientCertificate.ValueString(),
		ClientKey:         m.ClientKey.ValueString(),
		CACertificate:     m.ClusterCACertificate.ValueString(),
		TLSServerName:     m.TLSServerName.ValueString(),
		Insecure:          m.Insecure.ValueBoolPointer(),
		ProxyURL:          m.ProxyURL.ValueString(),
		Namespace:         m.Namespace.ValueString(),
	}
}

// classes is the catalogue with the classes that the block adds.
func (m *providerModel) classes(ctx context.Context) (class.Catalogue, error) {
	added := map[string]addedClass{}
	if diags := m.InstanceClasses.ElementsAs(ctx, &added, false); diags.HasError() {
		return nil, wrongType("instance_classes", diags)
	}
	more := class.Catalogue{}
	for name, c := range added {
		more[name] = class.Class{VCPU: c.CPU, MemoryMiB: c.MemoryMiB, MaxConnections: c.MaxConnections}
	}
	return class.Default().With(more)
}

// Schema describes the provider block.
func (p *dbaas) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	nonEmpty := []validator.String{stringvalidator.LengthAtLeast(1)}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Managed PostgreSQL on Harvester HCI: each instance is a virtual machine on a VLAN of your cluster, which Terraform creates, changes and deletes through the Kubernetes API.\n\n" +
			"The cluster is found as by kubectl. As soon as the block has a connection argument, the kubeconfigs that the environment names are ignored; " +
			"`host` goes before a kubeconfig, a kubeconfig before the service account of a pod. With nothing configured at all there is an error, never a connection to localhost.",
		Attributes: map[string]schema.Attribute{
			"config_path":            schema.StringAttribute{Optional: true, Validators: nonEmpty, MarkdownDescription: "Path of a kubeconfig file; `~` is the home folder. Environment: `KUBE_CONFIG_PATH`, then `KUBECONFIG`."},
			"config_paths":           schema.ListAttribute{ElementType: types.StringType, Optional: true, Validators: []validator.List{listvalidator.SizeAtLeast(1)}, MarkdownDescription: "Paths of several kubeconfig files, merged as kubectl does. Environment: `KUBE_CONFIG_PATHS`, separated as in `PATH`. Not together with `config_path` or `kubeconfig`."},
			"kubeconfig":             schema.StringAttribute{Optional: true, Sensitive: true, Validators: nonEmpty, MarkdownDescription: "Content of a kubeconfig, plain or base64, for runs where there are no files, such as HCP Terraform. Environment: `DBAAS_KUBECONFIG`."},
			"config_context":         schema.StringAttribute{Optional: true, Validators: nonEmpty, MarkdownDescription: "Context of the kubeconfig. Default: its current context. Environment: `KUBE_CTX`."},
			"host":                   schema.StringAttribute{Optional: true, Validators: nonEmpty, MarkdownDescription: "URL of the Kubernetes API, such as `https://harvester.example.com:6443`. Environment: `KUBE_HOST`."},
			"token":                  schema.StringAttribute{Optional: true, Sensitive: true, Validators: nonEmpty, MarkdownDescription: "Bearer token. Environment: `KUBE_TOKEN`."},
			"client_certificate":     schema.StringAttribute{Optional: true, Validators: nonEmpty, MarkdownDescription: "Client certificate, PEM, together with `client_key`. Environment: `KUBE_CLIENT_CERT_DATA`."},
			"client_key":             schema.StringAttribute{Optional: true, Sensitive: true, Validators: nonEmpty, MarkdownDescription: "Key of the client certificate, PEM. Environment: `KUBE_CLIENT_KEY_DATA`."},
			"cluster_ca_certificate": schema.StringAttribute{Optional: true, Validators: nonEmpty, MarkdownDescription: "Certificate authority, PEM, that the API's certificate is checked against. Default: the system's. Environment: `KUBE_CLUSTER_CA_CERT_DATA`."},
			"tls_server_name":        schema.StringAttribute{Optional: true, Validators: nonEmpty, MarkdownDescription: "Name that the API's certificate must carry. Default: the host's. Environment: `KUBE_TLS_SERVER_NAME`."},
			"insecure":               schema.BoolAttribute{Optional: true, MarkdownDescription: "Do not check the API's certificate. Default `false`. Environment: `KUBE_INSECURE`."},
			"proxy_url":              schema.StringAttribute{Optional: true, Validators: nonEmpty, MarkdownDescription: "URL of a proxy for every request to the API. Environment: `KUBE_PROXY_URL`."},
			"namespace": schema.StringAttribute{
				Optional: true, Validators: []validator.String{text("a DNS label", checkNamespace)},
				MarkdownDescription: "Namespace of instances that do not name one. Default: the kubeconfig context's, else `default`. Environment: `KUBE_NAMESPACE`.",
			},
			"default_tags": schema.MapAttribute{
				ElementType: types.StringType, Optional: true, Validators: []validator.Map{entries("a tag", checkTag)},
				MarkdownDescription: "Tags of every instance; an instance's own `tags` go before them.",
			},
			"instance_classes": schema.MapNestedAttribute{
				Optional:            true,
				MarkdownDescription: "Classes to add to the catalogue, by name, for `instance_class`. A name that the catalogue has cannot be redefined.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"cpu":             schema.Int64Attribute{Required: true, Validators: []validator.Int64{int64validator.AtLeast(1)}, MarkdownDescription: "Virtual CPUs."},
					"memory_mib":      schema.Int64Attribute{Required: true, Validators: []validator.Int64{int64validator.AtLeast(1)}, MarkdownDescription: "Memory in MiB (2²⁰ bytes)."},
					"max_connections": schema.Int64Attribute{Required: true, Validators: []validator.Int64{int64validator.AtLeast(1)}, MarkdownDescription: "PostgreSQL's `max_connections`."},
				}},
			},
		},
	}
}
