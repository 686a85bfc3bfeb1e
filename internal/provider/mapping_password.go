package provider

import (
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

// This file is mapping.go's part for the master password.

// mode says where the password comes from. A supplied one that is not known
// yet is supplied all the same.
func (m *model) mode(config model) instance.PasswordMode {
	switch {
	case !config.SuppliedPassword.IsNull():
		return instance.PasswordSupplied
	case m.ManagePassword.ValueBool():
		return instance.PasswordManaged
	default:
		return instance.PasswordGenerated
	}
}

// master is how the password of a settled model is wanted.
func (m *model) master(config model) instance.Master {
	return instance.Master{
		Mode: m.mode(config), Supplied: instance.Password(config.SuppliedPassword.ValueString()),
		Version: numeral(m.PasswordVersion), Rotation: numeral(m.PasswordRotation),
	}
}

// generated says whether the password belongs into the state. While the
// machine is lost, and with it the record of the mode, what Terraform had
// before decides; what it never had it does not get.
func generated(in *instance.Instance, before model) bool {
	if in.OperatorManaged {
		return true
	}
	if !in.MachineKnown {
		return before.MasterPassword.ValueString() != ""
	}
	return in.Master.Mode == instance.PasswordGenerated
}

// numeral is a number as the cluster records it, empty for none.
func numeral(n types.Int64) string {
	if n.IsNull() || n.IsUnknown() {
		return ""
	}
	return strconv.FormatInt(n.ValueInt64(), 10)
}

func numberOf(numeral string) types.Int64 {
	n, err := strconv.ParseInt(numeral, 10, 64)
	if err != nil {
		return types.Int64Null() // nothing is recorded, or nothing that we wrote
	}
	return types.Int64Value(n)
}
