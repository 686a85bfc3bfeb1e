package instance

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// served is an instance that was created and is available, on a server that
// stops and starts its machine as KubeVirt does.
func served(t *testing.T) (*apiServer, *Store, *Instance) {
	t.Helper()
	api, store := prepared(t)
	api.boots(t)
	made, err := store.Create(deadline(t, time.Minute), wantedSpec(), func(*Instance) {})
	if err != nil {
		t.Fatal(err)
	}
	api.Lock()
	defer api.Unlock()
	api.after = api.kubevirt(t)
	api.served = nil
	return api, store, made
}

// kubevirt follows the run strategy after every change of the VM, and its end.
func (a *apiServer) kubevirt(t *testing.T) func(http.ResponseWriter, *http.Request) bool {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete && r.URL.Path == vmPath {
			delete(a.objects, vmisPath+"/pg-orders")
		}
		if r.Method != http.MethodPatch || r.URL.Path != vmPath {
			return false
		}
		machine := a.objects[vmPath]
		status := kubevirtv1.VirtualMachineStatusRunning
		switch machine["spec"].(map[string]any)["runStrategy"] {
		case string(kubevirtv1.RunStrategyHalted):
			delete(a.objects, vmisPath+"/pg-orders")
			status = kubevirtv1.VirtualMachineStatusStopped
		default:
			if a.objects[vmisPath+"/pg-orders"] == nil {
				claim := a.objects[claimsPath+"/pg-orders-data"]
				a.boot(t)
				a.objects[claimsPath+"/pg-orders-data"] = claim
			}
		}
		machine["status"] = map[string]any{"printableStatus": string(status)}
		return false
	}
}

// strategies are the run strategies that were written, in order.
func strategies(api *apiServer) []string {
	api.Lock()
	defer api.Unlock()
	return api.halts
}

func TestUpdateRestartsOnlyForWhatABootApplies(t *testing.T) {
	for story, test := range map[string]struct {
		change func(*Spec)
		starts int
	}{
		"nothing":        {func(*Spec) {}, 0},
		"tags":           {func(s *Spec) { s.Tags = map[string]string{"a": "b"} }, 0},
		"protection":     {func(s *Spec) { s.DeletionProtection = true }, 0},
		"policy":         {func(s *Spec) { s.Retain = true }, 0},
		"mode":           {func(s *Spec) { s.Master.Mode = PasswordManaged }, 0},
		"package source": {func(s *Spec) { s.PackageSource.APTProxy = "http://proxy:3142" }, 0},
		"class's name":   {func(s *Spec) { s.ClassName = "db.other" }, 0},
		"setting":        {func(s *Spec) { s.Parameters = map[string]string{"work_mem": "8MB"} }, 1},
		"connections":    {func(s *Spec) { s.Class.MaxConnections++ }, 1},
		"names":          {func(s *Spec) { s.DNSNames = []string{"orders.example.com"} }, 1},
		"networks":       {func(s *Spec) { s.AllowedCIDRs = []string{} }, 1},
		"key":            {func(s *Spec) { s.SSHPublicKeys = []string{"ssh-ed25519 AAAA me"} }, 1},
		"rotation":       {func(s *Spec) { s.Master.Rotation = "1" }, 1},
		"stop":           {func(s *Spec) { s.Running = false }, 0},
		"all of it": {func(s *Spec) {
			s.Parameters, s.Extensions, s.Master.Rotation, s.Tags = map[string]string{"work_mem": "8MB"}, []string{"pg_trgm"}, "1", map[string]string{"a": "b"}
			s.Class.MaxConnections++
		}, 1},
	} {
		t.Run(story, func(t *testing.T) {
			api, store, made := served(t)
			wanted := wantedSpec()
			test.change(&wanted)
			got, err := store.Update(deadline(t, time.Minute), made.Key(), wanted)
			if err != nil {
				t.Fatal(err)
			}
			// What was written is what is read, the password's numbers included.
			if diff := cmp.Diff(wanted, got.Spec); diff != "" {
				t.Error(diff)
			}
			starts := 0
			for _, strategy := range strategies(api) {
				if strategy == string(kubevirtv1.RunStrategyAlways) {
					starts++
				}
			}
			if starts != test.starts {
				t.Errorf("%d starts, want %d: %v", starts, test.starts, api.writes())
			}
			written := len(api.writes())
			if story == "nothing" && written > 0 {
				t.Errorf("written: %v", api.writes())
			}
			if _, err := store.Update(deadline(t, time.Minute), made.Key(), wanted); err != nil || len(api.writes()) != written {
				t.Errorf("the same again: %v, written %v", err, api.writes()[written:])
			}
		})
	}
}

func TestUpdateLeavesWhatIsNotOurs(t *testing.T) {
	api, store, made := served(t)
	for story, key := range map[string]Key{
		"another create's": {Namespace: "tenant", Name: "orders", InstanceID: made.InstanceID, OwnerID: "another"},
		"another instance": {Namespace: "tenant", Name: "orders", InstanceID: "another", OwnerID: made.OwnerID},
	} {
		wanted := wantedSpec()
		wanted.DeletionProtection = true
		if _, err := store.Update(deadline(t, time.Minute), key, wanted); err == nil || len(api.writes()) > 0 {
			t.Errorf("%s: error %v, written %v", story, err, api.writes())
		}
	}
}

func TestInterruptedRotationGoesOnFromEveryMoment(t *testing.T) {
	wanted := wantedSpec()
	wanted.Master.Rotation = "1"
	// First count the writes of a rotation, then fail each of them.
	api, store, made := served(t)
	if _, err := store.Update(deadline(t, time.Minute), made.Key(), wanted); err != nil {
		t.Fatal(err)
	}
	writes := len(api.writes())
	if writes < 5 {
		t.Fatalf("a rotation writes only %v", api.writes())
	}
	for at := range writes {
		api, store, made := served(t)
		seen := 0
		api.before = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet {
				return false
			}
			if seen++; seen <= at {
				return false
			}
			answer(w, http.StatusForbidden, metav1.StatusReasonForbidden, r.URL.Path)
			return true
		}
		_, err := store.Update(deadline(t, time.Minute), made.Key(), wanted)
		if err == nil {
			t.Fatalf("write %d failed, the update did not", at)
		}
		between := api.secret(t, credentialsPath)
		next := string(between.Data[keyNextPassword])
		api.Lock()
		api.before = nil
		api.Unlock()
		got, err := store.Update(deadline(t, time.Minute), made.Key(), wanted)
		if err != nil {
			t.Fatalf("after write %d failed: %v", at, err)
		}
		now := api.secret(t, credentialsPath)
		if now.Data[keyNextPassword] != nil || got.Master.Rotation != "1" || got.Reason != "" {
			t.Errorf("after write %d failed: not finished (%s)", at, got.Reason)
		}
		if next != "" && string(now.Data[keyPassword]) != next {
			t.Errorf("after write %d failed: another password than the one that was begun", at)
		}
		if string(now.Data[keyPassword]) == made.MasterPassword {
			t.Errorf("after write %d failed: the old password is still in force", at)
		}
		if cloudinit.HasBootstrap(api.secret(t, cloudInitPath).Data[keyUserData]) {
			t.Errorf("after write %d failed: a verifier is left", at)
		}
	}
}

func TestGuestIsNotReadyWithTheOldPassword(t *testing.T) {
	api, store, made := served(t)
	before := parsed(t, api)
	wanted := wantedSpec()
	wanted.Master.Rotation = "1"
	if _, err := store.Update(deadline(t, time.Minute), made.Key(), wanted); err != nil {
		t.Fatal(err)
	}
	if after := parsed(t, api); after.PasswordRotation != before.PasswordRotation+1 || after.Hash() == before.Hash() {
		t.Error("a rotation and the time before it have one hash")
	}
}

func parsed(t *testing.T, api *apiServer) cloudinit.Config {
	t.Helper()
	config, err := cloudinit.ParseUserData(api.secret(t, cloudInitPath).Data[keyUserData])
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestRefusedConfigurationIsTakenBack(t *testing.T) {
	api, store, made := served(t)
	before := parsed(t, api)
	follow := api.after
	api.Lock()
	api.after = func(w http.ResponseWriter, r *http.Request) bool {
		follow(w, r)
		// The guest says no to whatever it is started with.
		if vmi := api.objects[vmisPath+"/pg-orders"]; vmi != nil && r.Method == http.MethodPatch {
			status := vmi["status"].(map[string]any)
			status["conditions"] = []any{map[string]any{"type": "Ready", "status": "False"}}
		}
		return false
	}
	api.console = "dbaas: step=converge state=failed reason=\"PostgreSQL refuses the configuration: work_mem\"\n"
	api.Unlock()
	wanted := wantedSpec()
	wanted.Parameters = map[string]string{"work_mem": "8GB"}
	wanted.Tags = map[string]string{"a": "b"}
	got, err := store.Update(deadline(t, time.Minute), made.Key(), wanted)
	unavailable, ok := errors.AsType[*UnavailableError](err)
	if !ok || !unavailable.TakenBack || !strings.Contains(err.Error(), "work_mem") {
		t.Fatalf("error %v", err)
	}
	if diff := cmp.Diff(before, parsed(t, api)); diff != "" {
		t.Error(diff)
	}
	if got.Parameters != nil || got.Reason != string(vm.ReasonPendingRestart) || got.Tags["a"] != "b" {
		t.Errorf("read as parameters %v, reason %s, tags %v", got.Parameters, got.Reason, got.Tags)
	}
}

func TestReplacedVolumeIsNotTouched(t *testing.T) {
	api, store, made := served(t)
	api.Lock()
	claim := api.objects[claimsPath+"/pg-orders-data"]
	claim["metadata"].(map[string]any)["uid"] = "blank"
	api.Unlock()
	wanted := wantedSpec()
	wanted.Parameters = map[string]string{"work_mem": "8MB"}
	got, err := store.Update(deadline(t, time.Minute), made.Key(), wanted)
	if _, refused := errors.AsType[*RefusalError](err); !refused || len(api.writes()) > 0 || got.Reason != string(vm.ReasonDataVolumeReplaced) {
		t.Errorf("error %v, written %v, reason %v", err, api.writes(), got)
	}
}

func TestPasswordsDoNotPrint(t *testing.T) {
	spec := Spec{Master: Master{Supplied: "correct horse"}}
	for _, printed := range []string{fmt.Sprintf("%v", spec), fmt.Sprintf("%+v", spec), fmt.Sprintf("%#v", spec), fmt.Sprintf("%s", spec.Master)} {
		if strings.Contains(printed, "correct horse") {
			t.Errorf("printed: %s", printed)
		}
	}
}

func TestEventsFromBeforeAChangeAreOld(t *testing.T) {
	at := func(uid string, generation int64) *kubevirtv1.VirtualMachine {
		return &kubevirtv1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Generation: generation}}
	}
	for story, test := range map[string]struct {
		known, told *kubevirtv1.VirtualMachine
		want        bool
	}{
		"earlier":                  {at("a", 3), at("a", 2), true},
		"only its status is newer": {at("a", 3), at("a", 3), false},
		"later":                    {at("a", 3), at("a", 4), false},
		"made anew":                {at("a", 3), at("b", 1), false},
		"gone":                     {at("a", 3), nil, false},
		"first seen":               {nil, at("a", 1), false},
	} {
		if got := outdated(test.known, test.told); got != test.want {
			t.Errorf("%s: %t", story, got)
		}
	}
}

// The volume grew under the running guest, whose filesystem did not: it is
// started anew, and is ready again only with a filesystem of that size.
func TestFilesystemThatDoesNotFollowIsWaitedForInTheNextBoot(t *testing.T) {
	api, store, made := served(t)
	api.console = "dbaas: step=disk state=ok reason=\"10240 MiB\"\n"
	restarts := api.after
	api.after = func(w http.ResponseWriter, r *http.Request) bool {
		if claim := claimsPath + "/pg-orders-data"; r.Method == http.MethodPatch && r.URL.Path == claim {
			spec := api.objects[claim]["spec"].(map[string]any)
			api.objects[claim]["status"] = map[string]any{"capacity": spec["resources"].(map[string]any)["requests"]}
		}
		return restarts(w, r)
	}
	wanted := made.Spec
	wanted.StorageGiB = 20
	got, err := store.Update(deadline(t, time.Minute), made.Key(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	if got.StorageGiB != 20 || parsed(t, api).DataGiB != 20 || !slices.Contains(strategies(api), "Halted") {
		t.Errorf("volume %d GiB, document %d GiB, strategies %v", got.StorageGiB, parsed(t, api).DataGiB, strategies(api))
	}
}
