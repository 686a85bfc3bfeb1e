package instance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// completion is what is written once an instance is available.
type completion struct {
	protect bool
	master  Master // with the numbers that the password in force belongs to
	address string // empty leaves the address that the Secret has
}

// complete records that the instance is available and takes what only the
// first boot needed out of the cluster. It may be repeated; what is done
// already costs no write. errNotOwner says that the instance is another's.
//
// The order matters. The VM's annotation comes first: from then on no other
// create takes the instance over. The CA key comes last: as long as it is
// there, something is left to do, and only the owner's write removes it.
func (s *Store) complete(ctx context.Context, key Key, c completion) error {
	wait := s.backoff()
	for {
		err := s.completeOnce(ctx, key, c)
		if err == nil || !apierrors.IsConflict(err) {
			return err
		}
		if wait.pause(ctx, 0) != nil {
			return err
		}
	}
}

func (s *Store) completeOnce(ctx context.Context, key Key, c completion) error {
	st, err := s.stand(ctx, key)
	if err != nil {
		return err
	}
	if st.vm == nil {
		return fmt.Errorf("complete instance %s: its virtual machine %s was deleted meanwhile; apply again", key, st.names.VM)
	}
	if st.credentials != nil {
		if err := owns(st.credentials, key); err != nil {
			return err
		}
	}
	if why := st.foreign(key); why != "" {
		return fmt.Errorf("complete instance %s: %s", key, why)
	}
	if err := s.annotate(ctx, st, st.milestones(c)); err != nil {
		return err
	}
	if err := s.labelDisk(ctx, st); err != nil {
		return err
	}
	if err := s.redactUserData(ctx, st); err != nil {
		return err
	}
	return s.finishCredentials(ctx, st, c)
}

// milestones are the VM's annotations of an instance that has become available.
func (st *standing) milestones(c completion) change {
	wanted := change{
		vm.AnnotationDeletionProtection: strconv.FormatBool(c.protect),
		vm.AnnotationPasswordMode:       string(c.master.Mode),
	}
	maps.Copy(wanted, c.master.record().annotations())
	if !vm.EverAvailable(st.vm) {
		wanted[vm.AnnotationAvailableSince] = time.Now().UTC().Format(time.RFC3339)
	}
	// Recorded once: a claim with another uid later is not the one with the data.
	if st.data != nil && st.vm.Annotations[vm.AnnotationDataVolumeUID] == "" {
		wanted[vm.AnnotationDataVolumeUID] = string(st.data.UID)
	}
	return wanted
}

// labelDisk labels an OS disk that CDI made, and its DataVolume, which come
// without our labels: one query by label is to find everything. That the VM
// boots from it makes the disk ours.
func (s *Store) labelDisk(ctx context.Context, st *standing) error {
	if st.vm == nil || st.os == nil || vm.Ours(st.os, st.key.Name) || st.names.OSVolume != vm.NamesOf(st.key.Name).OSVolume {
		return nil
	}
	labelled := change{"metadata": change{"labels": vm.Labels(st.key.Name)}}
	volume, err := s.dataVolume(ctx, st)
	if err != nil {
		return err
	}
	if volume != nil {
		body, err := labelled.onObject(volume)
		if err != nil {
			return err
		}
		_, err = retry(ctx, s, func(ctx context.Context) (*unstructured.Unstructured, error) {
			return s.client.Dynamic.Resource(dataVolumeResource()).Namespace(st.key.Namespace).
				Patch(ctx, volume.GetName(), mergePatch, body, metav1.PatchOptions{FieldManager: fieldManager})
		})
		if err != nil {
			return fmt.Errorf("label data volume %s/%s: %w", st.key.Namespace, volume.GetName(), err)
		}
	}
	body, err := labelled.onObject(st.os)
	if err != nil {
		return err
	}
	st.os, err = retry(ctx, s, func(ctx context.Context) (*corev1.PersistentVolumeClaim, error) {
		return s.client.Core.PersistentVolumeClaims(st.key.Namespace).
			Patch(ctx, st.names.OSVolume, mergePatch, body, metav1.PatchOptions{FieldManager: fieldManager})
	})
	return wrap(err, "label claim %s/%s", st.key.Namespace, st.names.OSVolume)
}

// dataVolume returns the DataVolume behind the OS disk, nil if there is none.
// Who may not ask is trusted to have none, unless the disk's claim names one.
func (s *Store) dataVolume(ctx context.Context, st *standing) (*unstructured.Unstructured, error) {
	volume, err := retry(ctx, s, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return s.client.Dynamic.Resource(dataVolumeResource()).Namespace(st.key.Namespace).Get(ctx, st.names.OSVolume, metav1.GetOptions{})
	})
	switch {
	case err == nil:
		return volume, nil
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err) && !madeByCDI(st.os):
		return nil, nil
	default:
		return nil, fmt.Errorf("get data volume %s/%s: %w", st.key.Namespace, st.names.OSVolume, err)
	}
}

func madeByCDI(claim *corev1.PersistentVolumeClaim) bool {
	return claim != nil && slices.ContainsFunc(claim.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == "DataVolume" })
}

// redactUserData replaces the first boot's user data with that of every later
// one: the same configuration, so the same hash, without CA key and verifier.
func (s *Store) redactUserData(ctx context.Context, st *standing) error {
	if st.next() != "" || st.cloudInit == nil || !vm.Ours(st.cloudInit, st.key.Name) || !cloudinit.HasBootstrap(st.cloudInit.Data[keyUserData]) {
		return nil
	}
	config, err := cloudinit.ParseUserData(st.cloudInit.Data[keyUserData])
	if err != nil {
		// The parser's error may quote what it read, and that holds the CA key.
		return &SecretError{Namespace: st.key.Namespace, Name: st.names.CloudInit, Key: keyUserData, Problem: "is not what this provider wrote"}
	}
	redacted, err := cloudinit.UserData(config, nil)
	if err != nil {
		return fmt.Errorf("render user data of instance %s: %w", st.key, err)
	}
	if cloudinit.HasBootstrap(redacted) {
		return errors.New("render user data: bootstrap material is still in it")
	}
	st.cloudInit, err = s.patchSecret(ctx, st.cloudInit, change{"data": map[string][]byte{keyUserData: redacted}})
	return err
}

// finishCredentials adds how to connect and removes the CA key. A Secret that
// somebody removed after the instance was available stays removed.
func (s *Store) finishCredentials(ctx context.Context, st *standing, c completion) error {
	if st.credentials == nil {
		return nil
	}
	record := vm.ReadRecord(st.vm)
	at := Connection{Host: c.address, Port: record.Port, DBName: record.DBName, User: record.MasterUsername}
	data := change{}
	if at.known() {
		for key, value := range map[string]string{
			keyHost: at.Host, keyPort: strconv.FormatInt(at.Port, 10), keyDBName: at.DBName,
			keyEndpoint: at.Endpoint(), keyConnectionURI: at.URI(), keyJDBCURL: at.JDBC(),
		} {
			if !bytes.Equal(st.credentials.Data[key], []byte(value)) {
				data[key] = []byte(value)
			}
		}
	}
	if _, present := st.credentials.Data[keyCAKey]; present {
		data[keyCAKey] = nil
	}
	wanted := change{}
	if len(data) > 0 {
		wanted["data"] = data
	}
	if forgotten := forgetRecord(st.credentials); forgotten != nil {
		wanted["metadata"] = change{"annotations": forgotten}
	}
	if len(wanted) == 0 {
		return nil
	}
	var err error
	st.credentials, err = s.patchSecret(ctx, st.credentials, wanted)
	return err
}
