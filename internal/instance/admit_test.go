package instance

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

func TestAdmission(t *testing.T) {
	spec := wantedSpec()
	secret, held := settled(t, spec)
	machine := machineOf(t, spec, held)
	claim := claimOf(spec, held)
	foreignClaim := claim.DeepCopy()
	foreignClaim.Annotations[vm.AnnotationInstanceID] = "another"
	foreignVM := machine.DeepCopy()
	foreignVM.Labels[vm.LabelManagedBy] = "somebody"
	otherVM := machine.DeepCopy()
	otherVM.Annotations[vm.AnnotationInstanceID] = "another"
	dyingVM := machine.DeepCopy()
	dyingVM.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	operatorVM := machine.DeepCopy()
	operatorVM.Labels[vm.LabelCreator] = vm.OperatorCreator
	foreignSecret := secret.DeepCopy()
	foreignSecret.Labels = nil
	swapped := secret.DeepCopy()
	swapped.Annotations[vm.AnnotationInstanceID] = "another"

	for story, test := range map[string]struct {
		stands standing
		want   string // part of the error, empty for admitted
	}{
		"nothing stands":                          {standing{}, ""},
		"secret of an earlier create":             {standing{credentials: secret}, ""},
		"secret and half-made vm":                 {standing{credentials: secret, vm: machine}, ""},
		"secret, vm and volume":                   {standing{credentials: secret, vm: machine, data: claim}, ""},
		"secret and volume, vm lost":              {standing{credentials: secret, data: claim}, ""},
		"operator's instance without vm":          {standing{operator: true}, "the DBaaS operator manages"},
		"operator's vm":                           {standing{vm: operatorVM}, "the DBaaS operator manages"},
		"stranger's vm":                           {standing{vm: foreignVM}, "virtual machine pg-orders stands already"},
		"vm of another instance":                  {standing{credentials: secret, vm: otherVM}, "virtual machine pg-orders stands already"},
		"vm that is going":                        {standing{credentials: secret, vm: dyingVM}, "still being deleted"},
		"vm that was available":                   {standing{credentials: secret, vm: since(machine)}, "it exists and was available"},
		"vm whose secret was finished":            {standing{credentials: without(secret, keyCAKey), vm: machine}, "it exists and was available"},
		"vm without secret":                       {standing{vm: machine}, "virtual machine pg-orders stands without the credentials secret"},
		"volume without secret":                   {standing{data: claim}, "volume pg-orders-data stands without the credentials secret"},
		"os disk without secret":                  {standing{os: claim}, "volume pg-orders-os stands without the credentials secret"},
		"finished secret without data":            {standing{credentials: without(secret, keyCAKey)}, `key "ca_key" is missing: the secret belongs to an instance whose data is gone`},
		"finished secret with data":               {standing{credentials: without(secret, keyCAKey), data: claim}, ""},
		"finished secret with another's data":     {standing{credentials: without(secret, keyCAKey), data: foreignClaim}, "volume pg-orders-data stands already"},
		"secret without ca":                       {standing{credentials: without(secret, keyCACert)}, `key "ca_cert" is missing`},
		"stranger's secret without ca":            {standing{credentials: without(foreignSecret, keyCACert)}, `key "ca_cert" is missing`},
		"stranger's secret":                       {standing{credentials: foreignSecret}, "secret pg-orders-credentials stands already"},
		"secret that disagrees with itself":       {standing{credentials: swapped}, `is annotated with "another"`},
		"volume of another instance":              {standing{credentials: secret, data: foreignClaim}, "volume pg-orders-data stands already"},
		"stranger's cloud-init secret":            {standing{credentials: secret, cloudInit: foreignSecret}, "secret pg-orders-cloudinit stands already"},
		"stranger's cloud-init secret, unclaimed": {standing{cloudInit: foreignSecret}, "secret pg-orders-cloudinit stands without"},
	} {
		t.Run(story, func(t *testing.T) {
			test.stands.key, test.stands.names = spec.Key(), vm.NamesOf(spec.Name)
			err := test.stands.admit(spec)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error = %v, want %q", err, test.want)
			}
		})
	}
}

func TestContinuingNeedsTheValuesThatWereBegunWith(t *testing.T) {
	begun := wantedSpec()
	secret, held := settled(t, begun)
	stands := standing{
		key: begun.Key(), names: vm.NamesOf(begun.Name),
		credentials: secret, vm: machineOf(t, begun, held),
	}
	for field, alter := range map[Field]func(*Spec){
		FieldClass:       func(s *Spec) { s.ClassName = "db.t3.large" },
		FieldStorage:     func(s *Spec) { s.StorageGiB = 11 },
		FieldNetwork:     func(s *Spec) { s.NetworkRef = "default/other" },
		FieldEngine:      func(s *Spec) { s.EngineVersion = "17" },
		FieldDatabase:    func(s *Spec) { s.DBName = "other" },
		FieldUser:        func(s *Spec) { s.MasterUsername = "other" },
		FieldPort:        func(s *Spec) { s.Port = 5433 },
		FieldImage:       func(s *Spec) { s.OSImage = "other" },
		FieldStorageType: func(s *Spec) { s.StorageType = "other" },
	} {
		wanted := begun
		alter(&wanted)
		err := stands.admit(wanted)
		found, ok := errors.AsType[*FieldError](err)
		if !ok || found.Field != field {
			t.Errorf("another %s: error = %v", field, err)
		}
	}
	// As long as only Secrets stand, nothing but the user's name is settled.
	stands.vm = nil
	wanted := begun
	wanted.EngineVersion, wanted.StorageGiB = "17", 99
	if err := stands.admit(wanted); err != nil {
		t.Errorf("secrets only: %v", err)
	}
}

func TestForeignInstancesAreToldApart(t *testing.T) {
	spec := wantedSpec()
	secret, held := settled(t, spec)
	machine := machineOf(t, spec, held)
	unlabelled := secret.DeepCopy()
	unlabelled.Labels = nil
	mine := Key{Namespace: "tenant", Name: "orders", InstanceID: held.InstanceID, OwnerID: "earlier-owner"}
	other := mine
	other.InstanceID = "another"
	taken := mine
	taken.OwnerID = "another"
	for story, test := range map[string]struct {
		stands standing
		key    Key
		want   string
		gone   bool
	}{
		"all ours":                    {standing{credentials: secret, vm: machine}, mine, "", false},
		"secret only":                 {standing{credentials: secret}, mine, "", false},
		"secret removed":              {standing{vm: machine}, mine, "", false},
		"nothing":                     {standing{}, mine, "", true},
		"another create took it over": {standing{credentials: secret, vm: machine}, taken, "has taken it over", false},
		"another instance":            {standing{credentials: secret, vm: machine}, other, "another instance", true},
		"another instance, vm lost":   {standing{credentials: secret}, other, "another instance", true},
		"another vm without secret":   {standing{vm: machine}, other, "another instance", true},
		"stranger's secret":           {standing{credentials: unlabelled}, mine, "", true},
		"import":                      {standing{credentials: secret, vm: machine}, Key{}, "", false},
	} {
		t.Run(story, func(t *testing.T) {
			test.stands.key = spec.Key()
			why := test.stands.foreign(test.key)
			if (test.want == "") != (why == "") || !strings.Contains(why, test.want) {
				t.Errorf("foreign = %q, want %q", why, test.want)
			}
			if gone := test.stands.gone(test.key); gone != test.gone {
				t.Errorf("gone = %t, want %t", gone, test.gone)
			}
		})
	}
}

func TestDeletionGuards(t *testing.T) {
	spec := wantedSpec()
	secret, held := settled(t, spec)
	machine := machineOf(t, spec, held)
	protected := since(machine)
	protected.Annotations[vm.AnnotationDeletionProtection] = "true"
	unborn := machine.DeepCopy()
	unborn.Annotations[vm.AnnotationDeletionProtection] = "true"
	finished := without(secret, keyCAKey)
	for story, test := range map[string]struct {
		stands standing
		intent Intent
		want   string
	}{
		"destroy":                           {standing{credentials: finished, vm: since(machine)}, IntentDestroy, ""},
		"rename":                            {standing{credentials: finished, vm: since(machine)}, IntentRename, ""},
		"taint of what never served":        {standing{credentials: secret, vm: machine}, IntentOther, ""},
		"taint of what served":              {standing{credentials: secret, vm: since(machine)}, IntentOther, "holds data"},
		"taint of what the secret says":     {standing{credentials: finished, vm: machine}, IntentOther, "holds data"},
		"an unknown reason":                 {standing{credentials: finished, vm: since(machine)}, "", "holds data"},
		"destroy of the protected":          {standing{credentials: finished, vm: protected}, IntentDestroy, "protected"},
		"rename of the protected":           {standing{credentials: finished, vm: protected}, IntentRename, "protected"},
		"destroy of protected that is bare": {standing{credentials: secret, vm: unborn}, IntentDestroy, ""},
	} {
		t.Run(story, func(t *testing.T) {
			test.stands.key = spec.Key()
			err := test.stands.guardDelete(DeleteRequest{Key: spec.Key(), Intent: test.intent})
			if (test.want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error = %v, want %q", err, test.want)
			}
		})
	}
}

func TestStorageIsReadFromTheTemplateUntilTheClaimExists(t *testing.T) {
	spec := wantedSpec()
	_, held := settled(t, spec)
	stands := standing{key: spec.Key(), names: vm.NamesOf(spec.Name), vm: machineOf(t, spec, held)}
	got, err := stands.spec()
	if err != nil {
		t.Fatal(err)
	}
	if got.StorageGiB != spec.StorageGiB || got.StorageType != spec.StorageType {
		t.Errorf("%d GiB of %s, want %d of %s", got.StorageGiB, got.StorageType, spec.StorageGiB, spec.StorageType)
	}
}
