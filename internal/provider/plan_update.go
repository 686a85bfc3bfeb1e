package provider

import (
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// This file decides about the plan of an instance that stands. It sees values
// only, no cluster.

// update is one planned change: what was, what is written, what will be.
type update struct {
	state, config model
	plan          *model
	tags          types.Map // the provider's default_tags
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
	u.settleSize()
	u.plan.keepComputed(u.state)
	u.settleTags()
	u.settleGuest()
	if !u.config.ManagePassword.IsUnknown() && !u.plan.ManagePassword.Equal(u.state.ManagePassword) {
		// Switching the mode shows or hides the password; it does not change it.
		u.plan.MasterPassword = types.StringUnknown()
		if u.plan.ManagePassword.ValueBool() {
			u.plan.MasterPassword = types.StringNull()
		}
	}
	u.refuseOperators()
	if workLeft(u.state.Status.ValueString(), u.state.StatusReason.ValueString()) {
		u.plan.forgetStatus()
		if !served(u.state.Status.ValueString()) {
			u.plan.forgetConnection()
		}
	}
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

// settleSize refuses what this version does not do yet.
func (u update) settleSize() {
	s, c := u.state, u.config
	if !c.InstanceClass.IsUnknown() && !c.InstanceClass.Equal(s.InstanceClass) {
		refused(u.diags, path.Root("instance_class"), "Cannot change instance_class",
			fmt.Sprintf("The instance has %s; the configuration says %s.", show("instance_class", s.InstanceClass), show("instance_class", c.InstanceClass)),
			"This version of the provider does not change the class of an instance that stands.",
			fmt.Sprintf("Write %s.", show("instance_class", s.InstanceClass)))
	}
	if !c.AllocatedStorage.IsUnknown() && !c.AllocatedStorage.Equal(s.AllocatedStorage) {
		why := "This version of the provider does not grow the volume of an instance that stands."
		if c.AllocatedStorage.ValueInt64() < s.AllocatedStorage.ValueInt64() {
			why = "A volume cannot shrink."
		}
		refused(u.diags, path.Root("allocated_storage"), "Cannot change allocated_storage",
			fmt.Sprintf("The data volume has %s GiB; the configuration says %s.", s.AllocatedStorage, c.AllocatedStorage),
			why, fmt.Sprintf("Write %s.", show("allocated_storage", s.AllocatedStorage)))
	}
}

// settleGuest refuses what this version does not do yet.
func (u update) settleGuest() {
	for name, change := range map[string][2]attr.Value{
		"parameters": {u.state.Parameters, u.plan.Parameters}, "extensions": {u.state.Extensions, u.plan.Extensions},
		"allowed_cidrs": {u.state.AllowedCIDRs, u.plan.AllowedCIDRs}, "dns_names": {u.state.DNSNames, u.plan.DNSNames},
		"ssh_public_keys": {u.state.SSHPublicKeys, u.plan.SSHPublicKeys}, "package_source": {u.state.PackageSource, u.plan.PackageSource},
		"tags": {u.state.TagsAll, u.plan.TagsAll}, "deletion_policy": {u.state.DeletionPolicy, u.plan.DeletionPolicy},
	} {
		if wholly(change[1]) && !change[0].Equal(change[1]) {
			refused(u.diags, path.Root(name), "Cannot change "+name, "This version of the provider does not change it for an instance that stands.")
		}
	}
}

// settleTags plans all tags.
func (u update) settleTags() {
	u.plan.TagsAll = allTags(u.plan.Tags, u.tags)
}

// refuseOperators refuses a change of what the DBaaS operator made. What is
// settled at creation is refused for every instance.
func (u update) refuseOperators() {
	changes := !u.plan.ManagePassword.Equal(u.state.ManagePassword) || !u.plan.DeletionProtection.Equal(u.state.DeletionProtection)
	if u.state.StatusReason.ValueString() != "OperatorManaged" || !changes {
		return
	}
	refused(u.diags, path.Empty(), "Cannot change an instance of the DBaaS operator",
		fmt.Sprintf("%s belongs to the DBaaS operator. The provider reads such an instance and never changes or deletes it.", u.state.key()),
		"Write deletion_protection and manage_master_user_password as they stand.",
		handOver)
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

// workLeft says whether an earlier apply left something that an update has to
// finish: a bootstrap secret that still stands in the guest's document, or a
// wait that ended before the instance served.
func workLeft(status, reason string) bool {
	if reason == "BootstrapMaterialPresent" || reason == "VMMissing" {
		return true
	}
	impossible := []string{"OperatorManaged", "DataVolumeReplaced"}
	return slices.Contains([]string{"creating", "failed"}, status) && !slices.Contains(impossible, reason)
}

// served says whether an instance of this status was available at some time.
// Of a failed one it does not tell.
func served(status string) bool {
	return slices.Contains([]string{"available", "degraded", "modifying", "stopping", "stopped", "starting", "deleting"}, status)
}
