package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

// connectionFunction renders a login as one string.
type connectionFunction struct {
	name, summary string
	render        func(login) string
}

func newConnectionURIFunction() function.Function {
	return &connectionFunction{
		name: "connection_uri", summary: "A postgresql:// URI of a login",
		render: login.uri,
	}
}

func newJDBCURLFunction() function.Function {
	return &connectionFunction{
		name: "jdbc_url", summary: "A jdbc:postgresql:// URL of a login",
		render: login.jdbc,
	}
}

// loginArgument is the functions' object.
type loginArgument struct {
	Host     types.String `tfsdk:"host"`
	Port     types.Int64  `tfsdk:"port"`
	DBName   types.String `tfsdk:"dbname"`
	Username types.String `tfsdk:"username"`
	Password types.String `tfsdk:"password"`
}

// Metadata names the function.
func (f *connectionFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = f.name
}

// Definition describes the function.
func (f *connectionFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: f.summary,
		MarkdownDescription: f.summary + ", with `sslmode=verify-full`, in which everything is percent-encoded that has to be. " +
			"`ephemeral.dbaas_credentials` fits as the argument; `username` and `password` may be null.",
		Parameters: []function.Parameter{function.ObjectParameter{
			Name: "login",
			AttributeTypes: map[string]attr.Type{
				"host": types.StringType, "port": types.Int64Type, "dbname": types.StringType, "username": types.StringType, "password": types.StringType,
			},
			MarkdownDescription: "An object with `host` (an IPv6 address without brackets), `port`, `dbname`, `username` and `password`.",
		}},
		Return: function.StringReturn{},
	}
}

// Run renders the login.
func (f *connectionFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var given loginArgument
	resp.Error = function.ConcatFuncErrors(resp.Error, req.Arguments.Get(ctx, &given))
	if resp.Error != nil {
		return
	}
	for name, missing := range map[string]bool{
		"host": given.Host.ValueString() == "", "dbname": given.DBName.ValueString() == "",
		"port": given.Port.ValueInt64() < 1 || given.Port.ValueInt64() > 65535,
	} {
		if missing {
			resp.Error = function.NewArgumentFuncError(0, fmt.Sprintf("%s is missing or out of range; give host and dbname, and a port from 1 to 65535", name))
			return
		}
	}
	if given.Username.ValueString() == "" && given.Password.ValueString() != "" {
		resp.Error = function.NewArgumentFuncError(0, "the password has no username; give both, or null for both")
		return
	}
	text := f.render(login{
		Connection: instance.Connection{
			Host: given.Host.ValueString(), Port: given.Port.ValueInt64(), DBName: given.DBName.ValueString(), User: given.Username.ValueString(),
		},
		password: given.Password.ValueString(),
	})
	resp.Error = function.ConcatFuncErrors(resp.Error, resp.Result.Set(ctx, text))
}
