// Package faulttest disturbs every request of every operation in every way,
// kills the provider at every request, and judges what is left: an operation
// succeeds by itself, or fails with an error that helps and the next one
// converges. Nothing may be lost.
//
// The requests to disturb are not listed anywhere: each operation runs once
// undisturbed through the lab's fault proxy, and what that recorded is
// disturbed, request by request. A new call is covered without anyone
// remembering it.
package faulttest

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wso2/terraform-provider-dbaas/internal/faultproxy"
)

// namespace is where the lab's tenant may have instances.
const namespace = "tenant-acme"

// lab is a running lab, seen by its administrator.
type lab struct {
	dir     string
	dynamic dynamic.Interface
	// metadata reads objects without their contents.
	metadata metadata.Interface
}

// useLab finds the lab that the environment names.
func useLab(t *testing.T) *lab {
	t.Helper()
	dir := os.Getenv("DBAAS_LAB_DIR")
	if dir == "" {
		t.Skip("needs a lab: run `make test-faults`, or `make lab-up` and then DBAAS_LAB_DIR=$PWD/.lab go test ./internal/faulttest")
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	must(t, err)
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{} // of the age of Endpoints, at each look
	dyn, err := dynamic.NewForConfig(config)
	must(t, err)
	meta, err := metadata.NewForConfig(config)
	must(t, err)
	return &lab{dir: dir, dynamic: dyn, metadata: meta}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rule disturbs requests; request is one that was recorded.
type (
	rule    = faultproxy.Rule
	request = faultproxy.Request
)

// newProxy runs a fault proxy until the test ends.
func (l *lab) newProxy(t *testing.T) *faultproxy.Proxy {
	t.Helper()
	program, err := filepath.Abs("../../bin/lab")
	must(t, err)
	p, err := faultproxy.Start(program, l.dir, filepath.Join(t.TempDir(), "proxy.kubeconfig"))
	must(t, err)
	t.Cleanup(func() { must(t, p.Close()) })
	return p
}
