package faults

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// server keeps ConfigMaps as an API server does, as far as these tests go.
type server struct {
	mu     sync.Mutex
	maps   []corev1.ConfigMap
	token  string
	events chan string // names; each becomes an event of the open watch
}

func newServer() *server { return &server{events: make(chan string)} }

func (s *server) created() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.maps)
}

func (s *server) authorization() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		s.watch(w, r)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/hang") {
		<-r.Context().Done()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = r.Header.Get("Authorization")
	name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/ns/configmaps"), "/")
	switch {
	case r.Method == http.MethodPost:
		var m corev1.ConfigMap
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.maps = append(s.maps, m)
		reply(w, http.StatusCreated, configMap(m.Name))
	case name == "":
		list := corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"}, Items: s.maps}
		reply(w, http.StatusOK, list)
	default:
		for _, m := range s.maps {
			if m.Name == name {
				reply(w, http.StatusOK, configMap(name))
				return
			}
		}
		reply(w, http.StatusNotFound, newStatus(http.StatusNotFound, ""))
	}
}

func (s *server) watch(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	_ = out.Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case name := <-s.events:
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": configMap(name)})
			_ = out.Flush()
		}
	}
}

func configMap(name string) corev1.ConfigMap {
	return corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
