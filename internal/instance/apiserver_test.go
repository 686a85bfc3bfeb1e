package instance

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/wso2/terraform-provider-dbaas/internal/cluster"
)

// apiServer keeps objects as Kubernetes does – names, uids, versions,
// preconditions – and knows nothing of what they mean. It is for what goes
// wrong between the provider and the API; how Harvester behaves is tested on
// the lab.
type apiServer struct {
	sync.Mutex
	objects map[string]map[string]any // by path
	serial  int
	served  []string // "METHOD path"
	halts   []string // run strategies that were written
	console string   // of the one pod, which exists if it says something

	// before runs instead of the server when it returns true. after runs when a
	// write or read took effect, and has answered when it returns true.
	before, after func(http.ResponseWriter, *http.Request) bool
	// arrive is called before anything else, by all requests at once.
	arrive func(*http.Request)
}

// newAPIServer starts a server and a store that uses it, impatient enough for tests.
func newAPIServer(t *testing.T) (*apiServer, *Store) {
	t.Helper()
	api := &apiServer{objects: map[string]map[string]any{}}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	client, err := cluster.New(cluster.Config{Host: server.URL, Namespace: "tenant"}, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	store := New(client, Options{})
	store.pace = pace{
		poll: 5 * time.Millisecond, look: 10 * time.Millisecond, grace: 20 * time.Millisecond,
		first: time.Millisecond, longest: 5 * time.Millisecond, patience: 3 * time.Second, growth: 50 * time.Millisecond, settle: 3 * time.Second,
	}
	return api, store
}

// ServeHTTP answers one request.
func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.arrive != nil {
		a.arrive(r)
	}
	a.Lock()
	defer a.Unlock()
	a.served = append(a.served, r.Method+" "+r.URL.Path)
	if a.before != nil && a.before(w, r) {
		return
	}
	if r.URL.Query().Get("watch") != "" {
		answer(w, http.StatusForbidden, metav1.StatusReasonForbidden, r.URL.Path)
		return
	}
	a.serve(w, r)
}

func (a *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	sent := body(r)
	if r.Method == http.MethodPost {
		path += "/" + name(sent)
	}
	stands, exists := a.objects[path]
	switch {
	case strings.HasSuffix(path, "/log"):
		_, _ = io.WriteString(w, a.console) // the client may have gone
		return
	case r.Method == http.MethodGet && isCollection(path):
		a.list(w, path)
		return
	case r.Method == http.MethodPost && exists:
		answer(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, path)
		return
	case r.Method == http.MethodPost:
		stands = a.put(path, sent)
	case !exists:
		answer(w, http.StatusNotFound, metav1.StatusReasonNotFound, path)
		return
	case r.Method == http.MethodPatch && !agrees(sent["metadata"], stands),
		r.Method == http.MethodDelete && !agrees(sent["preconditions"], stands):
		answer(w, http.StatusConflict, metav1.StatusReasonConflict, path)
		return
	case r.Method == http.MethodPatch:
		if spec, ok := sent["spec"].(map[string]any); ok && spec["runStrategy"] != nil {
			a.halts = append(a.halts, fmt.Sprint(spec["runStrategy"]))
		}
		stands = a.put(path, merge(stands, sent))
	case r.Method == http.MethodDelete:
		delete(a.objects, path)
	}
	if a.after != nil && a.after(w, r) {
		return
	}
	write(w, http.StatusOK, stands)
}

func (a *apiServer) put(path string, object map[string]any) map[string]any {
	a.serial++
	meta := object["metadata"].(map[string]any)
	if meta["uid"] == nil {
		meta["uid"] = fmt.Sprintf("uid-%d", a.serial)
	}
	meta["resourceVersion"] = fmt.Sprint(a.serial)
	a.objects[path] = object
	return object
}

func (a *apiServer) list(w http.ResponseWriter, path string) {
	items := []any{}
	for at, object := range a.objects {
		if strings.HasPrefix(at, path+"/") {
			items = append(items, object)
		}
	}
	if a.console != "" && strings.HasSuffix(path, "/pods") {
		items = append(items, map[string]any{
			"metadata": map[string]any{"name": "virt-launcher"}, "status": map[string]any{"phase": "Running"},
		})
	}
	kinds := map[string][2]string{
		"virtualmachineimages": {"harvesterhci.io/v1beta1", "VirtualMachineImageList"},
		"pods":                 {"v1", "PodList"},
		"events":               {"v1", "EventList"},
	}
	kind := kinds[path[strings.LastIndex(path, "/")+1:]]
	write(w, http.StatusOK, map[string]any{"apiVersion": kind[0], "kind": kind[1], "metadata": map[string]any{}, "items": items})
}

// add puts an object of Go's into a collection.
func (a *apiServer) add(t *testing.T, collection string, object metav1.Object) {
	t.Helper()
	a.Lock()
	defer a.Unlock()
	a.put(collection+"/"+object.GetName(), plain(t, object))
}

// plain returns an object of Go's as JSON has it.
func plain(t *testing.T, object any) map[string]any {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var result map[string]any
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

// writes returns what was asked to change, in order.
func (a *apiServer) writes() []string {
	a.Lock()
	defer a.Unlock()
	var writes []string
	for _, request := range a.served {
		if !strings.HasPrefix(request, http.MethodGet) {
			writes = append(writes, request)
		}
	}
	return writes
}

// text returns an object as JSON, empty when it does not exist.
func (a *apiServer) text(path string) string {
	a.Lock()
	defer a.Unlock()
	if a.objects[path] == nil {
		return ""
	}
	text, _ := json.Marshal(a.objects[path]) // it came from JSON
	return string(text)
}

// body reads what was sent: JSON, or the protobuf that the typed clients write.
func body(r *http.Request) map[string]any {
	if r.Body == nil {
		return nil
	}
	raw, _ := io.ReadAll(r.Body) // a cut request has no body
	if strings.Contains(r.Header.Get("Content-Type"), "protobuf") {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
		if err != nil {
			panic(err)
		}
		raw, _ = json.Marshal(object) // it came from protobuf
	}
	var sent map[string]any
	_ = json.Unmarshal(raw, &sent) // an empty body sends nothing
	return sent
}

func name(object map[string]any) string {
	u := unstructured.Unstructured{Object: object}
	return u.GetName()
}

func isCollection(path string) bool {
	parts := strings.Split(path, "/")
	return len(parts) > 2 && parts[len(parts)-3] == "namespaces"
}

// agrees says whether preconditions hold for what stands.
func agrees(preconditions any, stands map[string]any) bool {
	wanted, _ := preconditions.(map[string]any)
	has := stands["metadata"].(map[string]any)
	for _, key := range []string{"uid", "resourceVersion"} {
		if value, given := wanted[key]; given && value != has[key] {
			return false
		}
	}
	return true
}

func merge(stands, patch map[string]any) map[string]any {
	original, _ := json.Marshal(stands) // both came from JSON
	change, _ := json.Marshal(patch)
	merged, err := jsonpatch.MergePatch(original, change)
	if err != nil {
		panic(err)
	}
	var object map[string]any
	if err := json.Unmarshal(merged, &object); err != nil {
		panic(err)
	}
	return object
}

// answer sends a Status as Kubernetes does.
func answer(w http.ResponseWriter, code int, reason metav1.StatusReason, path string) {
	parts := strings.Split(path, "/")
	write(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, //nolint:gosec // an HTTP status
		Message: fmt.Sprintf("%s: %s", path, reason),
		Details: &metav1.StatusDetails{Name: parts[len(parts)-1]},
	})
}

func write(w http.ResponseWriter, code int, content any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(content) // the client may have gone
}

// cut ends the connection instead of answering.
func cut(w http.ResponseWriter) {
	connection, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = connection.Close()
	}
}
