package provider

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
)

// This file is mapping.go's part for what the guest applies, and for tags.

// networks are those that a set of texts names: nil for every one, which is the default.
func networks(set types.Set) []string {
	all := texts(set)
	if slices.Equal(all, everyNetwork()) {
		return nil
	}
	return append([]string{}, all...)
}

func networksOf(networks []string) types.Set {
	if networks == nil {
		return setOf(everyNetwork())
	}
	return setOf(networks)
}

// source is the package source of a settled model, the zero value for none.
func (m *model) source(ctx context.Context) (cloudinit.PackageSource, error) {
	if m.PackageSource.IsNull() {
		return cloudinit.PackageSource{}, nil
	}
	var wanted packageSource
	if diags := m.PackageSource.As(ctx, &wanted, basetypes.ObjectAsOptions{}); diags.HasError() {
		return cloudinit.PackageSource{}, wrongType("package_source", diags)
	}
	return cloudinit.PackageSource{APTProxy: wanted.APTProxy.ValueString(), PGDGMirror: wanted.PGDGMirror.ValueString()}, nil
}

func sourceOf(source cloudinit.PackageSource) types.Object {
	if source == (cloudinit.PackageSource{}) {
		return types.ObjectNull(packageSourceTypes())
	}
	return types.ObjectValueMust(packageSourceTypes(), map[string]attr.Value{
		"apt_proxy": presence(source.APTProxy), "pgdg_mirror": presence(source.PGDGMirror),
	})
}

func policyOf(retain bool) types.String {
	if retain {
		return types.StringValue(policyRetain)
	}
	return types.StringValue(policyDelete)
}

// keepGuest keeps what only the guest's documents tell, while those are lost.
func (m *model) keepGuest(before model) {
	keepKnown(&m.StaticNetwork, before.StaticNetwork)
	keepKnown(&m.Parameters, before.Parameters)
	keepKnown(&m.Extensions, before.Extensions)
	keepKnown(&m.AllowedCIDRs, before.AllowedCIDRs)
	keepKnown(&m.DNSNames, before.DNSNames)
	keepKnown(&m.SSHPublicKeys, before.SSHPublicKeys)
	keepKnown(&m.PackageSource, before.PackageSource)
	keepKnown(&m.Monitoring, before.Monitoring)
}

// keepMachine keeps what only the virtual machine tells, while that is lost.
func (m *model) keepMachine(before model) {
	keepKnown(&m.NetworkRef, before.NetworkRef)
	keepKnown(&m.Running, before.Running)
	keepKnown(&m.ManagePassword, before.ManagePassword)
	keepKnown(&m.PasswordVersion, before.PasswordVersion)
	keepKnown(&m.PasswordRotation, before.PasswordRotation)
	keepKnown(&m.DeletionProtection, before.DeletionProtection)
	keepKnown(&m.DeletionPolicy, before.DeletionPolicy)
	keepKnown(&m.Tags, before.Tags)
	keepKnown(&m.TagsAll, before.TagsAll)
	keepKnown(&m.VCPU, before.VCPU)
	keepKnown(&m.MemoryMiB, before.MemoryMiB)
	// The rest is recorded on the data volume too. With that gone as well, as
	// after a delete that was interrupted, a null would look like a change of
	// what cannot change, and nothing could be planned, not even a destroy.
	keepUnread(&m.InstanceClass, before.InstanceClass)
	keepUnread(&m.AllocatedStorage, before.AllocatedStorage)
	keepUnread(&m.EngineVersion, before.EngineVersion)
	keepUnread(&m.DBName, before.DBName)
	keepUnread(&m.MasterUsername, before.MasterUsername)
	keepUnread(&m.Port, before.Port)
	keepUnread(&m.OSImage, before.OSImage)
	keepUnread(&m.StorageType, before.StorageType)
}

// keepUnread is keepKnown for what may have been read elsewhere.
func keepUnread[T attr.Value](read *T, before T) {
	if (*read).IsNull() {
		keepKnown(read, before)
	}
}

func keepKnown[T attr.Value](read *T, before T) {
	if !before.IsNull() && !before.IsUnknown() {
		*read = before
	}
}

// ownTags tells an instance's own tags from those of the provider. A tag that
// Terraform took for the provider's stays that, also after it was taken out
// of default_tags; of what it has not seen yet, equality with a default decides.
func ownTags(all map[string]string, before model, defaults types.Map) types.Map {
	known := func(m types.Map, key string) (string, bool) {
		v, ok := m.Elements()[key].(types.String)
		return v.ValueString(), ok
	}
	own := map[string]string{}
	for key, value := range all {
		_, wasOwn := known(before.Tags, key)
		_, wasThere := known(before.TagsAll, key)
		common, isDefault := known(defaults, key)
		if wasOwn || !wasThere && (!isDefault || common != value) {
			own[key] = value
		}
	}
	return mapOf(own)
}

// allTags is what an instance's tags and the provider's make together.
func allTags(own, defaults types.Map) types.Map {
	if own.IsUnknown() || defaults.IsUnknown() {
		return types.MapUnknown(types.StringType)
	}
	all := map[string]attr.Value{}
	for _, tags := range []types.Map{defaults, own} {
		maps.Copy(all, tags.Elements())
	}
	return types.MapValueMust(types.StringType, all)
}

// texts are the elements of a set of texts, sorted; nil if there are none.
func texts(set types.Set) []string {
	var all []string
	for _, element := range set.Elements() {
		all = append(all, element.(types.String).ValueString())
	}
	slices.Sort(all)
	return all
}

// textMap is a map of texts, nil if it is empty.
func textMap(m types.Map) map[string]string {
	if len(m.Elements()) == 0 {
		return nil
	}
	all := map[string]string{}
	for key, value := range m.Elements() {
		all[key] = value.(types.String).ValueString()
	}
	return all
}

// mapOf is a map of texts; no texts make an empty map.
func mapOf(values map[string]string) types.Map {
	all := map[string]attr.Value{}
	for key, value := range values {
		all[key] = types.StringValue(value)
	}
	return types.MapValueMust(types.StringType, all)
}
