package instance

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// Keys of the cloud-init Secret.
const (
	keyUserData    = "userdata"
	keyNetworkData = "networkdata"
)

// spec reads the arguments as they stand. What cannot be told, since the
// object that tells it is gone or others made it, is the zero value.
func (st *standing) spec() (Spec, error) {
	spec := Spec{Namespace: st.key.Namespace, Name: st.key.Name}
	var record vm.Record
	switch {
	case st.vm != nil:
		record = vm.ReadRecord(st.vm)
		spec.NetworkRef = vm.NetworkRef(st.vm)
		spec.Class.VCPU, spec.Class.MemoryMiB = vm.Shape(st.vm)
		spec.Tags = vm.Tags(st.vm)
		spec.Running = vm.KeptRunning(st.vm, st.vmi)
	case st.data != nil:
		record = vm.ReadRecord(st.data)
	}
	spec.ClassName = record.ClassName
	spec.EngineVersion = record.EngineVersion
	spec.DBName = record.DBName
	spec.MasterUsername = record.MasterUsername
	spec.Port = record.Port
	spec.OSImage = record.OSImage
	spec.DeletionProtection = record.DeletionProtection
	spec.Retain = record.Retain
	password := st.passwordRecord()
	spec.Master = Master{Mode: record.PasswordMode, Version: password.version, Rotation: password.rotation}
	if err := st.specStorage(&spec); err != nil {
		return Spec{}, err
	}
	return spec, st.specGuest(&spec)
}

// specStorage reads size and class of the data volume: from the claim, or
// while Harvester has not made it yet from the VM's template of it.
func (st *standing) specStorage(spec *Spec) error {
	if st.data != nil {
		spec.StorageGiB = vm.GiB(st.data)
		if st.vm != nil && st.vmi == nil && !vm.WantsRunning(st.vm) {
			// Nothing uses the volume, so a growth that was accepted ends only with
			// the next start.
			spec.StorageGiB = max(spec.StorageGiB, vm.RequestGiB(st.data))
		}
		if st.data.Spec.StorageClassName != nil {
			spec.StorageType = *st.data.Spec.StorageClassName
		}
		return nil
	}
	if st.vm == nil || st.vm.Annotations[vm.AnnotationClaimTemplates] == "" {
		return nil
	}
	var templates []corev1.PersistentVolumeClaim
	if err := json.Unmarshal([]byte(st.vm.Annotations[vm.AnnotationClaimTemplates]), &templates); err != nil {
		return fmt.Errorf("read claim templates of vm %s/%s: %w", st.key.Namespace, st.names.VM, err)
	}
	for i := range templates {
		if templates[i].Name != st.names.DataVolume {
			continue
		}
		spec.StorageGiB = vm.GiB(&templates[i])
		if templates[i].Spec.StorageClassName != nil {
			spec.StorageType = *templates[i].Spec.StorageClassName
		}
	}
	return nil
}

// specGuest reads what only the guest's documents record. Those of an
// operator-made instance are not ours to read.
func (st *standing) specGuest(spec *Spec) error {
	if st.cloudInit == nil || !vm.Ours(st.cloudInit, st.key.Name) || st.operatorManaged() {
		return nil
	}
	// The parsers' errors may quote what they read: user data may hold the CA key.
	fault := func(key string) error {
		return &SecretError{Namespace: st.key.Namespace, Name: st.names.CloudInit, Key: key, Problem: "is not what this provider wrote"}
	}
	network, err := cloudinit.ParseNetworkData(st.cloudInit.Data[keyNetworkData])
	if err != nil {
		return fault(keyNetworkData)
	}
	spec.Static = network.Static
	config, err := cloudinit.ParseUserData(st.cloudInit.Data[keyUserData])
	if err != nil {
		return fault(keyUserData)
	}
	spec.Class.MaxConnections = config.MaxConnections
	spec.Parameters = config.Parameters
	spec.Extensions, spec.DNSNames, spec.SSHPublicKeys = config.Extensions, config.DNSNames, config.SSHPublicKeys
	spec.AllowedCIDRs = config.AllowedCIDRs
	spec.PackageSource, spec.Monitoring = config.PackageSource, config.Monitoring
	return nil
}

// observed is what vm.Assess judges, as far as the first round of reads goes.
func (st *standing) observed() vm.Observed {
	o := vm.Observed{
		VM:               st.vm,
		VMI:              st.vmi,
		OSClaim:          st.os,
		DataClaim:        st.data,
		DataClaimMissing: st.data == nil && st.names.DataVolume != "",
		EverAvailable:    st.everAvailable(),
		OperatorManaged:  st.operatorManaged(),
	}
	if st.cloudInit != nil {
		o.SecretHash = st.cloudInit.Annotations[vm.AnnotationConfigHash]
	}
	o.RotationPending = st.next() != ""
	o.BootstrapMaterial = st.bootstrapLeft()
	o.CredentialsMissing = !o.OperatorManaged && !st.credentialsWhole()
	o.MetricsFault = st.metricsFault()
	return o
}

// bootstrapLeft says whether a Secret still holds what only the first boot needs.
func (st *standing) bootstrapLeft() bool {
	if st.credentials != nil && vm.Ours(st.credentials, st.key.Name) && len(st.credentials.Data[keyCAKey]) > 0 {
		return true
	}
	// What a rotation needs stands in the document until it is finished.
	return st.next() == "" && st.cloudInit != nil && vm.Ours(st.cloudInit, st.key.Name) && cloudinit.HasBootstrap(st.cloudInit.Data[keyUserData])
}

func (st *standing) credentialsWhole() bool {
	if st.credentials == nil {
		return false
	}
	_, err := parseCredentials(st.credentials)
	return err == nil
}
