package acceptance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wso2/terraform-provider-dbaas/internal/cluster"
	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

// permission is one verb on one resource: the smallest rule there is.
type permission struct{ group, resource, verb string }

// String is a permission as the stories write it.
func (p permission) String() string { return p.resource + " " + p.verb }

// manifest is a Role or ClusterRole of examples/rbac.
type manifest struct {
	file  string
	role  rbacv1.ClusterRole // also of a Role, whose rules are the same
	local bool               // it is a Role
	// namespace is where the Role stands: the story's, where the file has the tenant's.
	namespace string
}

// accounts are service accounts, of which each has all that the manifests of
// examples/rbac give but one permission.
type accounts struct {
	l         *lab
	namespace string
	config    *rest.Config
	// without is the account that lacks a permission; the empty one lacks none.
	without map[permission]string
	home    map[permission]string // the manifest's file
}

// newAccounts makes the accounts in a namespace of their own, and removes all
// of it after the test.
func newAccounts(t *testing.T, l *lab, namespace string) *accounts {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(l.dir, "kubeconfig"))
	must(t, err)
	a := &accounts{l: l, namespace: namespace, config: config, without: map[permission]string{{}: "with-all"}, home: map[permission]string{}}
	t.Cleanup(a.remove)
	_, err = l.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	must(t, err)
	manifests := a.manifests(t)
	for _, m := range manifests {
		for _, p := range permissions(m.role.Rules) {
			a.without[p] = fmt.Sprintf("without-%d", len(a.without))
			a.home[p] = m.file
		}
	}
	for _, name := range a.without {
		_, err := l.kube.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		must(t, err)
	}
	for _, m := range manifests {
		a.grant(t, m)
	}
	a.awaitGranted(t)
	return a
}

// manifests are the files of examples/rbac, for the story's namespace.
func (a *accounts) manifests(t *testing.T) []manifest {
	t.Helper()
	files, err := filepath.Glob("../../examples/rbac/*.yaml")
	must(t, err)
	var all []manifest
	for _, file := range files {
		text, err := os.Open(file)
		must(t, err)
		defer text.Close()
		for stream := yaml.NewYAMLOrJSONDecoder(text, 4096); ; {
			m := manifest{file: filepath.Base(file)}
			if err := stream.Decode(&m.role); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			m.local, m.namespace = m.role.Kind == "Role", m.role.Namespace
			if m.namespace == namespace {
				m.namespace = a.namespace
			}
			if len(m.role.Rules) > 0 {
				all = append(all, m)
			}
		}
	}
	return all
}

// permissions takes rules apart.
func permissions(rules []rbacv1.PolicyRule) []permission {
	var all []permission
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, permission{group, resource, verb})
				}
			}
		}
	}
	return all
}

// grant gives every account the manifest's rules, without the one it lacks.
func (a *accounts) grant(t *testing.T, m manifest) {
	t.Helper()
	all := permissions(m.role.Rules)
	for lacking, name := range a.without {
		var rules []rbacv1.PolicyRule
		for _, p := range all {
			if p != lacking {
				rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{p.group}, Resources: []string{p.resource}, Verbs: []string{p.verb}})
			}
		}
		meta := metav1.ObjectMeta{Name: a.namespace + "-" + name, Namespace: m.namespace, Labels: map[string]string{"story": a.namespace}}
		subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.namespace, Name: name}}
		reference := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: m.role.Kind, Name: meta.Name}
		rbac, create := a.l.kube.RbacV1(), metav1.CreateOptions{}
		var err error
		if m.local {
			_, err = rbac.Roles(m.namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, create)
			must(t, err)
			_, err = rbac.RoleBindings(m.namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: reference, Subjects: subjects}, create)
		} else {
			_, err = rbac.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, create)
			must(t, err)
			_, err = rbac.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: reference, Subjects: subjects}, create)
		}
		must(t, err)
	}
}

// awaitGranted waits until the API server knows of all that was granted.
func (a *accounts) awaitGranted(t *testing.T) {
	t.Helper()
	for _, asked := range []authorizationv1.ResourceAttributes{
		{Namespace: a.namespace, Resource: "secrets", Verb: "get"},
		{Namespace: "default", Group: "harvesterhci.io", Resource: "virtualmachineimages", Verb: "get"},
		{Group: "storage.k8s.io", Resource: "storageclasses", Verb: "get"},
	} {
		for lacking, name := range a.without {
			if lacking == (permission{asked.Group, asked.Resource, asked.Verb}) {
				continue
			}
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "system:serviceaccount:" + a.namespace + ":" + name, ResourceAttributes: &asked,
			}}
			until(t, "the account "+name+" has its rules", func() bool {
				answer, err := a.l.kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
				must(t, err)
				return answer.Status.Allowed
			})
		}
	}
}

// until polls what has no watch.
func until(t *testing.T, what string, met func() bool) {
	t.Helper()
	end := time.After(time.Minute)
	for !met() {
		select {
		case <-end:
			t.Fatalf("it is not so that %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (a *accounts) remove() {
	ctx, chosen := context.Background(), metav1.ListOptions{LabelSelector: "story=" + a.namespace}
	rbac := a.l.kube.RbacV1()
	for _, err := range []error{
		rbac.RoleBindings("default").DeleteCollection(ctx, metav1.DeleteOptions{}, chosen),
		rbac.Roles("default").DeleteCollection(ctx, metav1.DeleteOptions{}, chosen),
		rbac.ClusterRoleBindings().DeleteCollection(ctx, metav1.DeleteOptions{}, chosen),
		rbac.ClusterRoles().DeleteCollection(ctx, metav1.DeleteOptions{}, chosen),
		a.l.kube.CoreV1().Namespaces().Delete(ctx, a.namespace, metav1.DeleteOptions{}), // and all that is in it
	} {
		if err != nil {
			a.l.t.Error(err)
		}
	}
	until(a.l.t, "namespace "+a.namespace+" is gone", func() bool {
		_, err := a.l.kube.CoreV1().Namespaces().Get(ctx, a.namespace, metav1.GetOptions{})
		return err != nil
	})
}

// told is all that an account's store reported.
type told struct {
	mutex sync.Mutex
	text  strings.Builder
	heard func(text string)
}

func (w *told) hear(_ context.Context, text string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.text.WriteString(text + "\n")
	if w.heard != nil {
		w.heard(w.text.String())
	}
}

// store is that of the account which lacks a permission; the zero one lacks none.
func (a *accounts) store(t *testing.T, lacking permission, words *told) *instance.Store {
	t.Helper()
	name, known := a.without[lacking]
	if !known {
		t.Fatalf("examples/rbac does not give %v", lacking)
	}
	token, err := a.l.kube.CoreV1().ServiceAccounts(a.namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	client, err := cluster.New(cluster.Config{
		Host: a.config.Host, Token: token.Status.Token, CACertificate: string(a.config.CAData),
	}, func(string) string { return "" })
	must(t, err)
	return instance.New(client, instance.Options{Report: words.hear})
}

// named says whether a text tells of the missing permission: in the words of
// the API server, or in ours.
func (p permission) named(text string) bool {
	return strings.Contains(text, fmt.Sprintf("cannot %s resource %q in API group %q", p.verb, p.resource, p.group)) ||
		strings.Contains(text, fmt.Sprintf("the verb %s on %s is missing", p.verb, p.resource))
}

// sorted are the permissions in an order that stays.
func (a *accounts) sorted() []permission {
	var all []permission
	for p := range a.home {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b permission) int { return strings.Compare(a.group+"/"+a.String(), b.group+"/"+b.String()) })
	return all
}
