package provider

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/wso2/terraform-provider-dbaas/internal/class"
	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

// This file decides about the plan of an instance that stands. It sees values
// only, no cluster.

// update is one planned change: what was, what is written, what will be.
type update struct {
	state, config model
	plan          *model
	tags          types.Map       // the provider's default_tags
	classes       class.Catalogue // nil while not known
	diags         *diag.Diagnostics
}

// moves lists the arguments by which the configuration names another instance
// than the one that stands. One that is not known is an error: it might turn
// out to be the standing name, and then a planned replace would have destroyed
// the data for nothing.
func moves(state, config model, diags *diag.Diagnostics) path.Paths {
	var moved path.Paths
	for _, part := range []struct {
		name              string
		standing, written types.String
	}{{"name", state.Name, config.Name}, {"namespace", state.Namespace, config.Namespace}} {
		switch {
		case part.written.IsNull() || part.written.Equal(part.standing):
		case part.written.IsUnknown():
			refused(diags, path.Root(part.name), "The "+part.name+" of an existing instance must be known",
				fmt.Sprintf("The instance has %s; what the configuration says is known only after apply.", show(part.name, part.standing)),
				"Another "+part.name+" means another instance, and the plan has to show whether this one is destroyed.",
				"Apply what the "+part.name+" depends on first, with -target, and then plan again.")
		default:
			moved.Append(path.Root(part.name))
		}
	}
	return moved
}

// settle turns the framework's plan, in which everything computed is unknown
// as soon as anything differs, into what will really change.
func (u update) settle() {
	u.settleCreateOnly()
	u.plan.keepComputed(u.state)
	u.plan.TagsAll = allTags(u.plan.Tags, u.tags)
	u.settleClass()
	u.refuseShrink()
	u.settlePassword()
	u.refuseOperators()
	u.settleStatus()
	u.settleMonitoring()
}

// settleCreateOnly keeps what was settled at creation, and refuses a value
// that differs.
func (u update) settleCreateOnly() {
	p, s, c := u.plan, u.state, u.config
	namespace := s.Namespace.ValueString()
	p.EngineVersion = keep(u, "engine_version", s.EngineVersion, c.EngineVersion, same)
	p.DBName = keep(u, "db_name", s.DBName, c.DBName, same)
	p.MasterUsername = keep(u, "master_username", s.MasterUsername, c.MasterUsername, same)
	p.Port = keep(u, "port", s.Port, c.Port, same)
	p.OSImage = keep(u, "os_image", s.OSImage, c.OSImage, func(a, b types.String) bool {
		return sameImage(a.ValueString(), b.ValueString())
	})
	p.StorageType = keep(u, "storage_type", s.StorageType, c.StorageType, same)
	p.StaticNetwork = keep(u, "static_network", s.StaticNetwork, c.StaticNetwork, same)
	p.NetworkRef = keep(u, "network_ref", s.NetworkRef, c.NetworkRef, func(a, b types.String) bool {
		return sameNetwork(namespace, a.ValueString(), b.ValueString())
	})
}

// keep is the planned value of a create-only argument.
func keep[T attr.Value](u update, name string, standing, written T, equal func(a, b T) bool) T {
	switch {
	case written.IsNull():
		return standing
	case !wholly(written):
		// Compared again by Update, once it is known.
		return written
	case equal(standing, written):
		return standing
	}
	now, way := "has no "+name, "leave it out"
	if !standing.IsNull() {
		now, way = "has "+show(name, standing), fmt.Sprintf("write %s, or leave it out", show(name, standing))
	}
	if name == "network_ref" && !standing.IsNull() {
		way = "write " + show(name, standing)
	}
	refused(u.diags, path.Root(name), "Cannot change "+name,
		fmt.Sprintf("The instance %s; the configuration says %s.", now, show(name, written)),
		"It is settled when an instance is created, and nothing changes it afterwards; a replace would lose the data.",
		fmt.Sprintf("To keep the instance, %s. To really get %s, create a second instance with it under another name, move the data with pg_dump and pg_restore, and then remove this one.", way, show(name, written)))
	return written
}

// handOver is the one way from the operator to Terraform.
const handOver = "To hand an instance over, create a new one, move the data with pg_dump and pg_restore, and run `terraform state rm` for this one."

func same[T attr.Value](a, b T) bool { return a.Equal(b) }

func show(name string, v attr.Value) string {
	return name + " = " + v.String()
}

// settleClass plans what the class decides: by the catalogue, which also shows
// a size that somebody else changed. A class that the catalogue does not know
// any more keeps its size.
func (u update) settleClass() {
	wanted := u.plan.InstanceClass
	if wanted.IsUnknown() || u.classes == nil {
		if !wanted.Equal(u.state.InstanceClass) {
			u.plan.VCPU, u.plan.MemoryMiB, u.plan.MaxConnections = types.Int64Unknown(), types.Int64Unknown(), types.Int64Unknown()
		}
		return
	}
	size, err := u.classes.Lookup(wanted.ValueString())
	switch {
	case err == nil && !u.operated():
		u.plan.VCPU, u.plan.MemoryMiB, u.plan.MaxConnections = number(size.VCPU), number(size.MemoryMiB), number(size.MaxConnections)
	case err != nil && !wanted.Equal(u.state.InstanceClass):
		unknownClass(u.diags, err)
	}
}

// refuseShrink refuses a volume that is smaller than it is.
func (u update) refuseShrink() {
	stands, wanted := u.state.AllocatedStorage, u.config.AllocatedStorage
	if wanted.IsUnknown() || stands.IsNull() || wanted.ValueInt64() >= stands.ValueInt64() {
		return
	}
	refused(u.diags, path.Root("allocated_storage"), "Cannot change allocated_storage",
		fmt.Sprintf("The data volume has %s GiB; the configuration says %s.", stands, wanted),
		"A volume cannot shrink.", fmt.Sprintf("Write %s.", show("allocated_storage", stands)))
}

// settlePassword plans what is shown of the password. Switching the mode shows
// or hides it; it does not change it.
func (u update) settlePassword() {
	state := u.state
	switch {
	case u.config.ManagePassword.IsUnknown():
		u.plan.MasterPassword = types.StringUnknown()
	case u.plan.mode(u.config) != instance.PasswordGenerated:
		u.plan.MasterPassword = types.StringNull()
	case u.rotates(), state.MasterPassword.IsNull() && state.secretActive():
		u.plan.MasterPassword = types.StringUnknown()
	}
	if u.rotates() && !u.plan.Running.IsUnknown() && !u.plan.Running.ValueBool() {
		at := "password_rotation"
		if u.plan.mode(u.config) == instance.PasswordSupplied {
			at = "master_password_wo_version"
		}
		refused(u.diags, path.Root(at), "Cannot set a password of an instance that stands still",
			"Only a guest that boots takes a new password, and running is false.",
			"Set running = true, in the same apply or before, or leave "+at+" as it is.")
	}
}

// rotates says whether the plan sets a new password.
func (u update) rotates() bool {
	if u.plan.mode(u.config) == instance.PasswordSupplied {
		return !u.plan.PasswordVersion.Equal(u.state.PasswordVersion)
	}
	return !u.plan.PasswordRotation.IsNull() && !u.plan.PasswordRotation.Equal(u.state.PasswordRotation)
}

// secretActive says whether the credentials Secret held a password when the
// state was read.
func (m *model) secretActive() bool {
	status, ok := m.MasterUserSecret.Attributes()["status"].(types.String)
	return ok && status.ValueString() == string(instance.SecretActive)
}

// operated says whether the DBaaS operator made the instance.
func (u update) operated() bool { return u.state.StatusReason.ValueString() == "OperatorManaged" }

// refuseOperators refuses a change of what the DBaaS operator made. What is
// settled at creation is refused for every instance.
func (u update) refuseOperators() {
	var changed []string
	for name, differs := range u.changed() {
		if differs {
			changed = append(changed, name)
		}
	}
	if !u.operated() || len(changed) == 0 {
		return
	}
	slices.Sort(changed)
	refused(u.diags, path.Root(changed[0]), "Cannot change an instance of the DBaaS operator",
		fmt.Sprintf("%s belongs to the DBaaS operator. The provider reads such an instance and never changes or deletes it.", u.state.key()),
		fmt.Sprintf("Write %s as it stands in the state.", strings.Join(changed, ", ")),
		handOver)
}

// changed says of every argument that changes in place whether it does.
func (u update) changed() map[string]bool {
	p, s := u.plan, u.state
	return map[string]bool{
		"instance_class":              !p.InstanceClass.Equal(s.InstanceClass),
		"allocated_storage":           !p.AllocatedStorage.Equal(s.AllocatedStorage),
		"running":                     !p.Running.Equal(s.Running),
		"manage_master_user_password": !p.ManagePassword.Equal(s.ManagePassword),
		"master_password_wo":          !p.MasterPassword.Equal(s.MasterPassword) && !u.operated(),
		"master_password_wo_version":  !p.PasswordVersion.Equal(s.PasswordVersion),
		"password_rotation":           !p.PasswordRotation.Equal(s.PasswordRotation),
		"deletion_protection":         !p.DeletionProtection.Equal(s.DeletionProtection),
		"deletion_policy":             !p.DeletionPolicy.Equal(s.DeletionPolicy),
		"parameters":                  !p.Parameters.Equal(s.Parameters),
		"extensions":                  !p.Extensions.Equal(s.Extensions),
		"allowed_cidrs":               !p.AllowedCIDRs.Equal(s.AllowedCIDRs),
		"dns_names":                   !p.DNSNames.Equal(s.DNSNames),
		"ssh_public_keys":             !p.SSHPublicKeys.Equal(s.SSHPublicKeys),
		"package_source":              !p.PackageSource.Equal(s.PackageSource),
		"monitoring":                  !p.Monitoring.Equal(s.Monitoring),
		"tags":                        !p.TagsAll.Equal(s.TagsAll),
	}
}

// boots says whether carrying the plan out may stop, start or restart the
// machine. Growth counts: not every cluster does it under a running machine.
func (u update) boots() bool {
	p, s, changed := u.plan, u.state, u.changed()
	if changed["running"] || workLeft(s.Status.ValueString(), s.StatusReason.ValueString()) && !bootless(s.StatusReason.ValueString()) {
		return true
	}
	if !s.Running.ValueBool() {
		return false // it stands still and goes on so
	}
	size := !p.VCPU.Equal(s.VCPU) || !p.MemoryMiB.Equal(s.MemoryMiB) || !p.MaxConnections.Equal(s.MaxConnections)
	return size || u.rotates() || changed["allocated_storage"] || changed["parameters"] || changed["extensions"] || changed["allowed_cidrs"] ||
		changed["dns_names"] || changed["ssh_public_keys"] || u.readersChange()
}

// settleStatus plans as unknown what is read again: the state, and where the
// database is reached once its machine has booted.
func (u update) settleStatus() {
	if u.boots() {
		u.plan.forgetStatus()
		u.plan.forgetConnection()
		return
	}
	if workLeft(u.state.Status.ValueString(), u.state.StatusReason.ValueString()) {
		u.plan.forgetStatus()
	}
}

// work says whether anything is to be done on the cluster.
func (u update) work() bool {
	if workLeft(u.state.Status.ValueString(), u.state.StatusReason.ValueString()) || u.boots() {
		return true
	}
	for _, differs := range u.changed() {
		if differs {
			return true
		}
	}
	size := !u.plan.VCPU.Equal(u.state.VCPU) || !u.plan.MemoryMiB.Equal(u.state.MemoryMiB) || !u.plan.MaxConnections.Equal(u.state.MaxConnections)
	return size
}

// keepComputed plans every computed value as it stands.
func (m *model) keepComputed(state model) {
	m.Namespace = state.Namespace
	m.ID, m.InstanceID, m.OwnerID = state.ID, state.InstanceID, state.OwnerID
	m.Status, m.StatusReason = state.Status, state.StatusReason
	m.Address, m.Endpoint = state.Address, state.Endpoint
	m.ConnectionURI, m.JDBCURL = state.ConnectionURI, state.JDBCURL
	m.CACertPEM, m.CAValidUntil = state.CACertPEM, state.CAValidUntil
	m.MasterPassword, m.MasterUserSecret = state.MasterPassword, state.MasterUserSecret
	m.VCPU, m.MemoryMiB, m.MaxConnections = state.VCPU, state.MemoryMiB, state.MaxConnections
	m.EngineVersionActual, m.Resources = state.EngineVersionActual, state.Resources
	m.GrafanaURL = state.GrafanaURL
}

// forgetStatus plans a status that will be read.
func (m *model) forgetStatus() {
	m.Status, m.StatusReason = types.StringUnknown(), types.StringUnknown()
}

// forgetConnection plans an address that will be read.
func (m *model) forgetConnection() {
	for _, v := range []*types.String{&m.Address, &m.Endpoint, &m.ConnectionURI, &m.JDBCURL, &m.EngineVersionActual} {
		*v = types.StringUnknown()
	}
}
