package instance

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// admit says whether a create of the wanted instance may begin, or go on with
// what an earlier create left. It never touches anything: who is refused
// finds everything as it was.
func (st *standing) admit(spec Spec) error {
	if st.operatorManaged() {
		return nameTaken("Choose another name, or import the instance: it can then be read, not changed.",
			"create instance %s: the DBaaS operator manages an instance of this name", st.key)
	}
	if st.vm != nil {
		if err := st.admitVM(); err != nil {
			return err
		}
	}
	if st.credentials == nil {
		return st.admitUnclaimed()
	}
	held, err := parseCredentials(st.credentials)
	if err != nil {
		return err
	}
	if !vm.Ours(st.credentials, st.key.Name) {
		return st.stranger("create", "secret", st.names.Credentials)
	}
	if id := st.credentials.Annotations[vm.AnnotationInstanceID]; id != held.InstanceID {
		return nameTaken("Restore the Secret, or remove what is left of the instance.",
			"create instance %s: secret %s holds instance id %s and is annotated with %q", st.key, st.names.Credentials, held.InstanceID, id)
	}
	if held.finished() {
		return st.admitRetained(spec, held)
	}
	if err := checkSupplied(st.credentials, spec.Master); err != nil {
		return err
	}
	if err := st.admitParts(held); err != nil {
		return err
	}
	return st.admitValues(spec, held)
}

// admitVM looks at a VM that stands already.
func (st *standing) admitVM() error {
	switch {
	case !vm.Ours(st.vm, st.key.Name):
		return st.stranger("create", "virtual machine", st.names.VM)
	case vm.EverAvailable(st.vm):
		return exists(st.key)
	case st.vm.DeletionTimestamp != nil:
		return nameTaken("Wait until it is gone, then apply again.",
			"create instance %s: an earlier virtual machine %s is still being deleted", st.key, st.names.VM)
	}
	return nil
}

// admitUnclaimed is for a name whose credentials Secret does not exist: then
// nothing of consequence may stand, since nothing could be continued.
func (st *standing) admitUnclaimed() error {
	var left string
	switch {
	case st.vm != nil:
		left = "virtual machine " + st.names.VM
	case st.data != nil:
		left = "volume " + st.names.DataVolume
	case st.os != nil:
		left = "volume " + st.names.OSVolume
	case st.cloudInit != nil && !vm.Ours(st.cloudInit, st.key.Name):
		left = "secret " + st.names.CloudInit
	default:
		return nil
	}
	return nameTaken("Choose another name. If what stands is not needed any more, remove it with kubectl.",
		"create instance %s: %s stands without the credentials secret %s", st.key, left, st.names.Credentials)
}

// refuseFinished is for a credentials Secret without CA key and no VM that
// was available: data, if there is any, belongs to an earlier instance.
func (st *standing) refuseFinished() error {
	if st.vm != nil {
		return exists(st.key)
	}
	if st.data == nil {
		return &SecretError{
			Namespace: st.key.Namespace, Name: st.names.Credentials, Key: keyCAKey,
			Problem: "is missing: the secret belongs to an instance whose data is gone; remove the secret to use the name again",
		}
	}
	return nil
}

// admitRetained is for what an instance has left that was deleted with its
// data kept: a create takes it over if it is the same database.
func (st *standing) admitRetained(spec Spec, held credentials) error {
	if err := st.refuseFinished(); err != nil {
		return err
	}
	if err := st.admitParts(held); err != nil {
		return err
	}
	if err := checkSupplied(st.credentials, spec.Master); err != nil {
		return err
	}
	stands, err := st.spec()
	if err != nil {
		return err
	}
	stands.MasterUsername, stands.StorageGiB = held.User, vm.RequestGiB(st.data)
	for _, d := range stands.differences(spec) {
		switch d.field {
		case FieldEngine, FieldDatabase, FieldUser, FieldPort, FieldStorageType:
			return st.retainedDiffers(d)
		case FieldStorage:
			if spec.StorageGiB < stands.StorageGiB {
				return st.retainedDiffers(d)
			}
		default: // may be another one now
		}
	}
	return nil
}

func (st *standing) retainedDiffers(d difference) error {
	return &FieldError{
		Field: d.field,
		Err: fmt.Errorf("create instance %s: volume %s, which an earlier instance of this name has left, was made with %s = %q, wanted is %q",
			st.key, st.names.DataVolume, d.field, d.stands, cmp.Or(d.wanted, "nothing")),
		Advice: fmt.Sprintf("Write the value that stands, to take the data over; or choose another name. If the data is not needed any more: kubectl -n %s delete pvc/%s secret/%s",
			st.key.Namespace, st.names.DataVolume, st.names.Credentials),
	}
}

// takesOver says whether a create would take over what a deleted instance left.
func (st *standing) takesOver() bool {
	if st.vm != nil || st.data == nil || st.credentials == nil || !vm.Ours(st.credentials, st.key.Name) {
		return false
	}
	_, unfinished := st.credentials.Data[keyCAKey]
	return !unfinished
}

// admitParts checks that everything that stands carries the Secret's identity.
func (st *standing) admitParts(held credentials) error {
	if st.vm != nil && st.vm.Annotations[vm.AnnotationInstanceID] != held.InstanceID {
		return st.stranger("create", "virtual machine", st.names.VM)
	}
	if st.data != nil && (!vm.Ours(st.data, st.key.Name) || st.data.Annotations[vm.AnnotationInstanceID] != held.InstanceID) {
		return st.stranger("create", "volume", st.names.DataVolume)
	}
	// CDI makes OS disks without our labels; then the VM, which is ours, vouches for it.
	if st.os != nil && st.vm == nil && !vm.Ours(st.os, st.key.Name) {
		return st.stranger("create", "volume", st.names.OSVolume)
	}
	if st.cloudInit != nil && !vm.Ours(st.cloudInit, st.key.Name) {
		return st.stranger("create", "secret", st.names.CloudInit)
	}
	return nil
}

// admitValues checks that what was begun is what is wanted now. An earlier
// attempt without VM and volume has settled nothing but the user's name.
func (st *standing) admitValues(spec Spec, held credentials) error {
	if held.User != spec.MasterUsername {
		return st.differs("secret "+st.names.Credentials, difference{FieldUser, held.User, spec.MasterUsername})
	}
	if st.vm == nil && st.data == nil {
		return nil
	}
	begun, err := st.spec()
	if err != nil {
		return err
	}
	where := "virtual machine " + st.names.VM
	if st.vm == nil {
		where = "volume " + st.names.DataVolume
	}
	for _, d := range begun.differences(spec) {
		return st.differs(where, d)
	}
	return nil
}

// difference is one argument that stands on the cluster with another value.
type difference struct {
	field          Field
	stands, wanted string
}

// differences compares what stands with what is wanted. What is not recorded
// is not compared.
func (s Spec) differences(wanted Spec) []difference {
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	all := []difference{
		{FieldClass, s.ClassName, wanted.ClassName},
		{FieldStorage, number(s.StorageGiB), number(wanted.StorageGiB)},
		{FieldNetwork, s.NetworkRef, wanted.NetworkRef},
		{FieldEngine, s.EngineVersion, wanted.EngineVersion},
		{FieldDatabase, s.DBName, wanted.DBName},
		{FieldUser, s.MasterUsername, wanted.MasterUsername},
		{FieldPort, number(s.Port), number(wanted.Port)},
		{FieldImage, s.OSImage, wanted.OSImage},
		{FieldStorageType, s.StorageType, wanted.StorageType},
	}
	if s.NetworkRef != "" { // else there is no VM whose documents could differ
		all = append(all,
			difference{FieldStaticNetwork, describeStatic(s.Static), describeStatic(wanted.Static)},
			difference{FieldParameters, fmt.Sprint(s.Parameters), fmt.Sprint(wanted.Parameters)},
			difference{FieldExtensions, fmt.Sprint(s.Extensions), fmt.Sprint(wanted.Extensions)},
			difference{FieldAllowedCIDRs, describeNetworks(s.AllowedCIDRs), describeNetworks(wanted.AllowedCIDRs)},
			difference{FieldDNSNames, fmt.Sprint(s.DNSNames), fmt.Sprint(wanted.DNSNames)},
			difference{FieldSSHPublicKeys, fmt.Sprint(s.SSHPublicKeys), fmt.Sprint(wanted.SSHPublicKeys)},
			difference{FieldMonitoring, describeReaders(s.Monitoring), describeReaders(wanted.Monitoring)},
		)
	}
	return slices.DeleteFunc(all, func(d difference) bool { return d.stands == "" || d.stands == d.wanted })
}

// describeStatic writes an address configuration for a message; equal
// configurations give equal texts.
func describeStatic(s *cloudinit.Static) string {
	if s == nil {
		return "DHCP"
	}
	return fmt.Sprintf("%s via %s, nameservers %v, search domains %v", s.Address, s.Gateway, s.Nameservers, slices.Clip(s.SearchDomains))
}

func describeNetworks(networks []string) string {
	if networks == nil {
		return "every network"
	}
	return fmt.Sprint(networks)
}

// describeReaders is what the guest has to know of monitoring.
func describeReaders(m *cloudinit.Monitoring) string {
	if m == nil {
		return "off"
	}
	return "on, for " + describeNetworks(m.AllowedCIDRs)
}

func (st *standing) differs(where string, d difference) error {
	return &FieldError{
		Field: d.field,
		Err:   fmt.Errorf("continue instance %s: %s was begun with %s = %q, wanted is %q", st.key, where, d.field, d.stands, cmp.Or(d.wanted, "nothing")),
		Advice: fmt.Sprintf("Apply with the value that stands, or remove what the earlier attempt left: "+
			"kubectl -n %s delete vm,secret,pvc -l %s=%s,%s=%s", st.key.Namespace, vm.LabelInstance, st.key.Name, vm.LabelManagedBy, vm.ManagedBy),
	}
}

func nameTaken(advice, format string, args ...any) error {
	return &FieldError{Field: FieldName, Err: fmt.Errorf(format, args...), Advice: advice}
}

func (st *standing) stranger(verb, kind, name string) error {
	return nameTaken("Choose another name.",
		"%s instance %s: %s %s stands already and does not belong to it", verb, st.key, kind, name)
}

func exists(key Key) error {
	return nameTaken(fmt.Sprintf("Use `terraform import` with the id %s to manage it, or choose another name.", key),
		"create instance %s: it exists and was available", key)
}
