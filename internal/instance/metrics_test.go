package instance

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wso2/terraform-provider-dbaas/internal/cloudinit"
	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

const (
	servicesPath  = "/api/v1/namespaces/tenant/services"
	endpointsPath = "/api/v1/namespaces/tenant/endpoints"
	monitorsPath  = "/apis/monitoring.coreos.com/v1/namespaces/tenant/servicemonitors"

	servicePath  = servicesPath + "/pg-orders-metrics"
	endpointPath = endpointsPath + "/pg-orders-metrics"
	monitorPath  = monitorsPath + "/pg-orders-monitor"
)

func outletPaths() []string { return []string{servicePath, endpointPath, monitorPath} }

func watchedSpec() Spec {
	spec := wantedSpec()
	spec.Monitoring = &cloudinit.Monitoring{ScrapeInterval: "15s"}
	return spec
}

// watched is an instance that was created with monitoring and is available.
func watched(t *testing.T) (*apiServer, *Store, *Instance) {
	t.Helper()
	api, store := prepared(t)
	api.boots(t)
	made, err := store.Create(deadline(t, 10*time.Second), watchedSpec(), func(*Instance) {})
	if err != nil {
		t.Fatal(err)
	}
	api.Lock()
	defer api.Unlock()
	api.after = api.kubevirt(t)
	api.served = nil
	return api, store, made
}

// mine is what the instance's three objects are, as they were asked for.
func mine(made *Instance, interval, address string) map[string]any {
	m := vm.Metrics{Namespace: "tenant", Name: "orders", InstanceID: made.InstanceID, Interval: interval, Address: address}
	all := map[string]any{}
	for path, object := range map[string]*unstructured.Unstructured{servicePath: m.Service(), endpointPath: m.Endpoints(), monitorPath: m.ServiceMonitor()} {
		all[path] = object.Object
	}
	return all
}

// stands is whether the server has the objects, and nothing else of them.
func stands(t *testing.T, api *apiServer, want map[string]any) {
	t.Helper()
	api.Lock()
	defer api.Unlock()
	for path, object := range want {
		if !holds(any(api.objects[path]), any(plain(t, object))) {
			t.Errorf("%s is %v, want %v", path, api.objects[path], object)
		}
	}
	for _, path := range outletPaths() {
		if want[path] == nil && api.objects[path] != nil {
			t.Errorf("%s stands", path)
		}
	}
}

// moved gives the machine another address.
func (a *apiServer) moved(address string) {
	a.Lock()
	defer a.Unlock()
	a.objects[vmisPath+"/pg-orders"]["status"].(map[string]any)["interfaces"] = []any{map[string]any{"name": vm.DataNetwork, "ipAddress": address}}
}

func TestMetricsArePublishedOnceTheInstanceIsAvailable(t *testing.T) {
	api, store := prepared(t)
	api.boots(t)
	var accepted *Instance
	made, err := store.Create(deadline(t, 10*time.Second), watchedSpec(), func(i *Instance) { accepted = i })
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Warnings) > 0 || made.Reason != "" || accepted.Names.MetricsService != "" {
		t.Errorf("warnings %v, reason %s, accepted with the Service %q", made.Warnings, made.Reason, accepted.Names.MetricsService)
	}
	if diff := cmp.Diff(vm.NamesOf("orders"), made.Names); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(watchedSpec().Monitoring, made.Monitoring); diff != "" {
		t.Error(diff)
	}
	stands(t, api, mine(made, "15s", "198.18.0.10"))
	writes := api.writes()
	want := []string{"PATCH " + credentialsPath, "POST " + servicesPath, "POST " + endpointsPath, "POST " + monitorsPath}
	if diff := cmp.Diff(want, writes[len(writes)-4:]); diff != "" {
		t.Error(diff)
	}
}

func TestReadOfAMonitoredInstanceIsTwoRounds(t *testing.T) {
	api, store, made := watched(t)
	api.arrive = inRounds(5, 3)
	got, err := store.Get(deadline(t, 20*time.Second), made.Key())
	if err != nil {
		t.Fatal(err)
	}
	if got.Status != "available" || got.Reason != "" || len(api.served) != 8 {
		t.Errorf("status %s (%s), requests %v", got.Status, got.Reason, api.served)
	}
}

func TestWhatPrometheusWouldNotFindIsPutRight(t *testing.T) {
	for story, test := range map[string]struct {
		change func(*apiServer)
		detail string
		writes []string
	}{
		"another address": {
			func(a *apiServer) { a.moved("198.18.0.77") }, "endpoints pg-orders-metrics is not what this instance needs",
			[]string{"PATCH " + credentialsPath, "PATCH " + endpointPath},
		},
		"Endpoints of somebody": {
			func(a *apiServer) {
				a.objects[endpointPath]["subsets"].([]any)[0].(map[string]any)["addresses"] = []any{map[string]any{"ip": "203.0.113.9"}}
			}, "endpoints pg-orders-metrics is not",
			[]string{"PATCH " + endpointPath},
		},
		"no Service": {
			func(a *apiServer) { delete(a.objects, servicePath) }, "service pg-orders-metrics does not exist",
			[]string{"POST " + servicesPath},
		},
		"no Endpoints": {
			func(a *apiServer) { delete(a.objects, endpointPath) }, "endpoints pg-orders-metrics does not exist",
			[]string{"POST " + endpointsPath},
		},
		"no ServiceMonitor": {
			func(a *apiServer) { delete(a.objects, monitorPath) }, "servicemonitor pg-orders-monitor does not exist",
			[]string{"POST " + monitorsPath},
		},
		"a Service that chooses pods": {
			func(a *apiServer) {
				a.objects[servicePath]["spec"].(map[string]any)["selector"] = map[string]any{"app": "x"}
			}, "service pg-orders-metrics is not",
			[]string{"PATCH " + servicePath},
		},
		"a ServiceMonitor that the chart does not choose": {
			func(a *apiServer) {
				delete(a.objects[monitorPath]["metadata"].(map[string]any)["labels"].(map[string]any), "release")
			}, "servicemonitor pg-orders-monitor is not",
			[]string{"PATCH " + monitorPath},
		},
	} {
		t.Run(story, func(t *testing.T) {
			api, store, made := watched(t)
			test.change(api)
			got, err := store.Get(deadline(t, 10*time.Second), made.Key())
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != "available" || got.Reason != string(vm.ReasonMetricsAddressStale) || !strings.Contains(got.Detail, test.detail) {
				t.Errorf("status %s (%s): %s", got.Status, got.Reason, got.Detail)
			}
			if sent := api.writes(); len(sent) > 0 {
				t.Errorf("a read wrote %v", sent)
			}
			after, err := store.Update(deadline(t, 10*time.Second), made.Key(), watchedSpec())
			if err != nil {
				t.Fatal(err)
			}
			if after.Reason != "" || len(strategies(api)) > 0 {
				t.Errorf("reason %s, run strategies %v", after.Reason, strategies(api))
			}
			stands(t, api, mine(made, "15s", after.Address))
			if diff := cmp.Diff(test.writes, api.writes()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatOthersAddToTheMetricsObjectsStays(t *testing.T) {
	api, store, made := watched(t)
	api.Lock()
	api.objects[servicePath]["spec"].(map[string]any)["internalTrafficPolicy"] = "Cluster"
	api.objects[monitorPath]["metadata"].(map[string]any)["labels"].(map[string]any)["team"] = "ops"
	api.objects[monitorPath]["spec"].(map[string]any)["endpoints"].([]any)[0].(map[string]any)["scrapeTimeout"] = "10s"
	api.Unlock()
	got, err := store.Update(deadline(t, 10*time.Second), made.Key(), watchedSpec())
	if err != nil || got.Reason != "" || len(api.writes()) > 0 {
		t.Errorf("error %v, reason %s, written %v", err, got.Reason, api.writes())
	}
}

func TestMonitoringRestartsOnlyForWhatTheGuestApplies(t *testing.T) {
	for story, test := range map[string]struct {
		monitoring *cloudinit.Monitoring
		starts     int
		writes     []string // of the three objects
	}{
		"interval": {&cloudinit.Monitoring{ScrapeInterval: "1m"}, 0, []string{"PATCH " + monitorPath}},
		"Grafana":  {&cloudinit.Monitoring{ScrapeInterval: "15s", GrafanaBaseURL: "https://grafana.example.com"}, 0, nil},
		"readers":  {&cloudinit.Monitoring{ScrapeInterval: "15s", AllowedCIDRs: []string{"10.0.0.0/8"}}, 1, nil},
		"off":      {nil, 1, []string{"DELETE " + monitorPath, "DELETE " + endpointPath, "DELETE " + servicePath}},
	} {
		t.Run(story, func(t *testing.T) {
			api, store, made := watched(t)
			wanted := watchedSpec()
			wanted.Monitoring = test.monitoring
			got, err := store.Update(deadline(t, 10*time.Second), made.Key(), wanted)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(wanted, got.Spec); diff != "" || got.Reason != "" {
				t.Errorf("reason %s\n%s", got.Reason, diff)
			}
			starts := slices.DeleteFunc(strategies(api), func(s string) bool { return s == "Halted" })
			if len(starts) != test.starts {
				t.Errorf("%d starts, want %d", len(starts), test.starts)
			}
			if diff := cmp.Diff(test.writes, outletWrites(api)); diff != "" {
				t.Error(diff)
			}
			if test.monitoring == nil {
				stands(t, api, nil)
			} else {
				stands(t, api, mine(made, test.monitoring.ScrapeInterval, got.Address))
			}
			written := len(api.writes())
			if _, err := store.Update(deadline(t, 10*time.Second), made.Key(), wanted); err != nil || len(api.writes()) != written {
				t.Errorf("the same again: %v, written %v", err, api.writes()[written:])
			}
		})
	}
}

// outletWrites are the writes to the three objects.
func outletWrites(api *apiServer) []string {
	var writes []string
	for _, request := range api.writes() {
		for _, collection := range []string{servicesPath, endpointsPath, monitorsPath} {
			if strings.Contains(request, collection) {
				writes = append(writes, request)
			}
		}
	}
	return writes
}

func TestMonitoringIsSwitchedOnWithOneRestart(t *testing.T) {
	api, store, made := served(t)
	got, err := store.Update(deadline(t, 10*time.Second), made.Key(), watchedSpec())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Halted", "Always"}, strategies(api)); diff != "" {
		t.Error(diff)
	}
	stands(t, api, mine(made, "15s", "198.18.0.10"))
	if got.Reason != "" || got.Names.ServiceMonitor != "pg-orders-monitor" {
		t.Errorf("reason %s, names %v", got.Reason, got.Names)
	}
}

func TestNothingIsPublishedWithoutAnAddress(t *testing.T) {
	api, store, made := served(t)
	still := watchedSpec()
	still.Running = false
	got, err := store.Update(deadline(t, 10*time.Second), made.Key(), still)
	if err != nil {
		t.Fatal(err)
	}
	stands(t, api, nil)
	if got.Status != "stopped" || got.Reason != "" {
		t.Errorf("status %s (%s)", got.Status, got.Reason)
	}
	if got, err = store.Update(deadline(t, 10*time.Second), made.Key(), watchedSpec()); err != nil || got.Reason != "" {
		t.Fatalf("start: reason %s, error %v", got.Reason, err)
	}
	stands(t, api, mine(made, "15s", "198.18.0.10"))
	// Stopped again, they keep the last address, and the interval still changes.
	still.Monitoring = &cloudinit.Monitoring{ScrapeInterval: "1m"}
	if got, err = store.Update(deadline(t, 10*time.Second), made.Key(), still); err != nil || got.Reason != "" {
		t.Fatalf("stop: reason %s, error %v", got.Reason, err)
	}
	stands(t, api, mine(made, "1m", "198.18.0.10"))
}

func TestClusterWithoutServiceMonitors(t *testing.T) {
	api, store := prepared(t)
	api.boots(t)
	api.before = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/apis/monitoring.coreos.com/") {
			http.NotFound(w, r) // as the API server answers for a group that it does not serve
			return true
		}
		return false
	}
	made, err := store.Create(deadline(t, 10*time.Second), watchedSpec(), func(*Instance) {})
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Warnings) != 1 || !strings.Contains(made.Warnings[0], "rancher-monitoring") {
		t.Errorf("warnings %q", made.Warnings)
	}
	if made.Reason != "" || made.Names.MetricsService == "" || made.Names.ServiceMonitor != "" {
		t.Errorf("reason %s, names %v", made.Reason, made.Names)
	}
	want := mine(made, "15s", "198.18.0.10")
	delete(want, monitorPath)
	stands(t, api, want)
	// Once the cluster knows them, the next apply makes it.
	api.Lock()
	api.before = nil
	api.Unlock()
	if got, err := store.Get(deadline(t, 10*time.Second), made.Key()); err != nil || got.Reason != string(vm.ReasonMetricsAddressStale) {
		t.Errorf("reason %s, error %v", got.Reason, err)
	}
	if got, err := store.Update(deadline(t, 10*time.Second), made.Key(), watchedSpec()); err != nil || got.Reason != "" || len(got.Warnings) > 0 {
		t.Errorf("reason %s, warnings %v, error %v", got.Reason, got.Warnings, err)
	}
	stands(t, api, mine(made, "15s", "198.18.0.10"))
}

// stranger is an object of somebody else under one of the three names.
func stranger(path string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Some", "metadata": map[string]any{
		"name": path[strings.LastIndex(path, "/")+1:], "namespace": "tenant", "uid": "theirs", "resourceVersion": "7",
	}}
}

func TestNamesOfStrangersAreRefusedBeforeAnythingIsWritten(t *testing.T) {
	for _, path := range outletPaths() {
		t.Run(path, func(t *testing.T) {
			api, store := prepared(t)
			api.objects[path] = stranger(path)
			before := maps.Clone(api.objects[path])
			_, err := store.Create(deadline(t, 10*time.Second), watchedSpec(), func(*Instance) { t.Error("accepted") })
			field, ok := errors.AsType[*FieldError](err)
			if !ok || field.Field != FieldMonitoring || !strings.Contains(err.Error(), path[strings.LastIndex(path, "/")+1:]) {
				t.Errorf("error %v, want one about monitoring", err)
			}
			found, err := store.Check(deadline(t, 10*time.Second), watchedSpec())
			if err != nil || len(found) != 1 || found[0].Field != FieldMonitoring || found[0].Warning || found[0].Summary == "" {
				t.Errorf("the plan finds %v, %v", found, err)
			}
			if sent := api.writes(); len(sent) > 0 || !cmp.Equal(before, api.objects[path]) {
				t.Errorf("written: %v", sent)
			}

			api, store, made := served(t)
			api.objects[path] = stranger(path)
			if _, err := store.Update(deadline(t, 10*time.Second), made.Key(), watchedSpec()); err == nil || len(api.writes()) > 0 {
				t.Errorf("update: error %v, written %v", err, api.writes())
			}
			if _, err := store.Delete(deadline(t, 10*time.Second), DeleteRequest{Key: made.Key(), Intent: IntentDestroy}); err != nil {
				t.Error(err)
			}
			if !cmp.Equal(before, api.objects[path]) {
				t.Errorf("the delete left %v", api.objects[path])
			}
		})
	}
}

// forbid answers requests as the authorizer does that knows no rule for them.
func forbid(method, path string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if method != "" && r.Method != method || !strings.HasPrefix(r.URL.Path, path) {
			return false
		}
		write(w, http.StatusForbidden, metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Message: `servicemonitors.monitoring.coreos.com is forbidden: User "u" cannot ` + map[string]string{"": "get", "POST": "create"}[method] +
				` resource "servicemonitors" in API group "monitoring.coreos.com" in the namespace "tenant"`,
		})
		return true
	}
}

func TestMissingRuleIsNamed(t *testing.T) {
	denied := func(t *testing.T, err error, verb string) {
		t.Helper()
		want := Denial{Verb: verb, Resource: "servicemonitors", Group: "monitoring.coreos.com", Namespace: "tenant"}
		if got, ok := Denied(err); !ok || got != want {
			t.Errorf("error %v", err)
		}
	}
	t.Run("before a create", func(t *testing.T) {
		api, store := prepared(t)
		api.before = forbid("", monitorsPath)
		_, err := store.Create(deadline(t, 10*time.Second), watchedSpec(), func(*Instance) { t.Error("accepted") })
		denied(t, err, "get")
		if sent := api.writes(); len(sent) > 0 {
			t.Errorf("written: %v", sent)
		}
	})
	t.Run("after a create that it must not taint", func(t *testing.T) {
		api, store := prepared(t)
		api.boots(t)
		api.before = forbid(http.MethodPost, monitorsPath)
		made, err := store.Create(deadline(t, 10*time.Second), watchedSpec(), func(*Instance) {})
		if err != nil {
			t.Fatal(err)
		}
		if len(made.Warnings) != 1 || !strings.Contains(made.Warnings[0], "cannot create resource") || made.Reason != string(vm.ReasonMetricsAddressStale) {
			t.Errorf("reason %s, warnings %q", made.Reason, made.Warnings)
		}
		_, err = store.Update(deadline(t, 10*time.Second), made.Key(), watchedSpec())
		denied(t, err, "create")
	})
	t.Run("in a read", func(t *testing.T) {
		api, store, made := watched(t)
		api.before = forbid("", monitorsPath)
		_, err := store.Get(deadline(t, 10*time.Second), made.Key())
		denied(t, err, "get")
	})
	t.Run("in a delete, without monitoring", func(t *testing.T) {
		api, store, made := served(t)
		api.before = forbid("", monitorsPath)
		if _, err := store.Delete(deadline(t, 10*time.Second), DeleteRequest{Key: made.Key(), Intent: IntentDestroy}); err != nil {
			t.Error(err)
		}
	})
	t.Run("in a delete that cannot know", func(t *testing.T) {
		api, store, made := served(t)
		api.before = forbid("", monitorsPath)
		delete(api.objects, cloudInitPath)
		if _, err := store.Delete(deadline(t, 10*time.Second), DeleteRequest{Key: made.Key(), Intent: IntentDestroy}); err != nil {
			t.Error(err)
		}
	})
	t.Run("in a delete, with monitoring", func(t *testing.T) {
		api, store, made := watched(t)
		api.before = forbid("", monitorsPath)
		_, err := store.Delete(deadline(t, 10*time.Second), DeleteRequest{Key: made.Key(), Intent: IntentDestroy})
		denied(t, err, "get")
		if api.text(credentialsPath) == "" {
			t.Error("the Secret that says whose the objects are is gone")
		}
	})
}

func TestDeleteRemovesTheMetricsObjectsAfterTheMachine(t *testing.T) {
	api, store, made := watched(t)
	if _, err := store.Delete(deadline(t, 10*time.Second), DeleteRequest{Key: made.Key(), Intent: IntentDestroy}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"DELETE " + vmPath,
		"DELETE " + monitorPath, "DELETE " + endpointPath, "DELETE " + servicePath,
		"DELETE " + claimsPath + "/pg-orders-data",
		"DELETE " + cloudInitPath,
		"DELETE " + credentialsPath,
	}
	if diff := cmp.Diff(want, api.writes()); diff != "" {
		t.Error(diff)
	}
}

func TestDeleteFindsTheMetricsObjectsWithoutTheGuestsDocument(t *testing.T) {
	api, store, made := watched(t)
	api.Lock()
	delete(api.objects, cloudInitPath)
	api.Unlock()
	if _, err := store.Delete(deadline(t, 10*time.Second), DeleteRequest{Key: made.Key(), Intent: IntentDestroy}); err != nil {
		t.Fatal(err)
	}
	stands(t, api, nil)
}

func TestDeleteLeavesTheMetricsObjectsOfAnotherInstance(t *testing.T) {
	api, store, made := watched(t)
	api.Lock()
	for _, path := range outletPaths() {
		api.objects[path]["metadata"].(map[string]any)["annotations"] = map[string]any{vm.AnnotationInstanceID: "another"}
	}
	api.Unlock()
	if _, err := store.Delete(deadline(t, 10*time.Second), DeleteRequest{Key: made.Key(), Intent: IntentDestroy}); err != nil {
		t.Fatal(err)
	}
	if sent := outletWrites(api); len(sent) > 0 {
		t.Errorf("sent: %v", sent)
	}
}

func TestInstancesWithoutMonitoringAreNotAskedForIt(t *testing.T) {
	api, store, made := served(t)
	wanted := wantedSpec()
	wanted.Parameters = map[string]string{"work_mem": "8MB"}
	if _, err := store.Update(deadline(t, 10*time.Second), made.Key(), wanted); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Delete(deadline(t, 10*time.Second), DeleteRequest{Key: made.Key(), Intent: IntentDestroy}); err != nil {
		t.Fatal(err)
	}
	for _, request := range api.served {
		for _, collection := range []string{servicesPath, endpointsPath, monitorsPath} {
			if strings.Contains(request, collection) {
				t.Errorf("%s was sent", request)
			}
		}
	}
}

func TestTakenOverDataIsMonitoredAgain(t *testing.T) {
	api, store, made := watched(t)
	kept := watchedSpec()
	kept.Retain = true
	if _, err := store.Update(deadline(t, 10*time.Second), made.Key(), kept); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Delete(deadline(t, 10*time.Second), DeleteRequest{Key: made.Key(), Intent: IntentDestroy}); err != nil {
		t.Fatal(err)
	}
	stands(t, api, nil)
	follow := api.after
	api.Lock()
	api.after = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && r.URL.Path == vmsPath {
			claim := api.objects[claimsPath+"/pg-orders-data"]
			api.boot(t)
			api.objects[claimsPath+"/pg-orders-data"] = claim
		}
		return follow(w, r)
	}
	api.before = forbid(http.MethodPost, monitorsPath)
	api.Unlock()
	again, err := store.Create(deadline(t, 10*time.Second), kept, func(*Instance) {})
	if err != nil {
		t.Fatalf("an instance that serves is an error: %v", err)
	}
	if again.InstanceID != made.InstanceID || len(again.Warnings) != 1 || again.Reason != string(vm.ReasonMetricsAddressStale) {
		t.Errorf("reason %s, warnings %v", again.Reason, again.Warnings)
	}
}
