package instance

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// consoleLines is how much of the guest's console is read: its last words.
const consoleLines = 200

// lookCloser adds to what was seen why an instance is not available: its
// claims as they are now, the events about it, and what the guest says on its
// console. It is best effort: what cannot be read is left as it was.
func (s *Store) lookCloser(ctx context.Context, st *standing, seen *vm.Observed) {
	claims := s.client.Core.PersistentVolumeClaims(st.key.Namespace)
	var group errgroup.Group
	group.Go(func() error {
		if found, err := claims.Get(ctx, st.names.DataVolume, metav1.GetOptions{}); err == nil {
			seen.DataClaim = found
		}
		return nil
	})
	group.Go(func() error {
		if found, err := claims.Get(ctx, st.names.OSVolume, metav1.GetOptions{}); err == nil {
			seen.OSClaim = found
		}
		return nil
	})
	group.Go(func() error {
		pods, unread := s.pods(ctx, st.key)
		said := s.listen(ctx, st, pods)
		seen.Events, seen.EventsUnread = said.events, said.eventsUnread
		seen.Console, seen.ConsoleUnread = said.console, cmp.Or(unread, said.consoleUnread)
		return nil
	})
	_ = group.Wait() // nothing in it fails
}

// pods lists the pods of an instance; none where they cannot be read, and why
// that leaves the console unread.
func (s *Store) pods(ctx context.Context, key Key) (all []corev1.Pod, unread string) {
	list, err := s.client.Core.Pods(key.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{vm.LabelInstance: key.Name}.String(),
	})
	if err != nil {
		return nil, unreadable("the guest's console", err)
	}
	return list.Items, ""
}

// unreadable says, as a clause, why something could not be read.
func unreadable(what string, err error) string {
	if d, ok := Denied(err); ok {
		return fmt.Sprintf("%s may not be read: the verb %s on %s is missing", what, d.Verb, d.Resource)
	}
	return what + " could not be read"
}

// testimony is what cluster and guest say about an instance.
type testimony struct {
	events                 []corev1.Event
	eventsUnread           string
	console, consoleUnread string
}

// listen reads, in one concurrent round, the events about an instance's
// objects and the guest's console.
func (s *Store) listen(ctx context.Context, st *standing, pods []corev1.Pod) testimony {
	subjects := []string{st.names.VM, st.names.DataVolume, st.names.OSVolume}
	for _, pod := range pods {
		subjects = append(subjects, pod.Name)
	}
	events, unread := make([][]corev1.Event, len(subjects)), make([]string, len(subjects))
	var said testimony
	var group errgroup.Group
	for i, subject := range subjects {
		group.Go(func() error {
			events[i], unread[i] = s.eventsOf(ctx, st.key.Namespace, subject)
			return nil
		})
	}
	group.Go(func() error {
		said.console, said.consoleUnread = s.console(ctx, st.key.Namespace, pods)
		return nil
	})
	_ = group.Wait() // nothing in it fails
	said.events, said.eventsUnread = slices.Concat(events...), cmp.Or(unread...)
	return said
}

// eventsOf are the events about one object, or why they could not be read.
func (s *Store) eventsOf(ctx context.Context, namespace, name string) (all []corev1.Event, unread string) {
	if name == "" {
		return nil, ""
	}
	list, err := s.client.Core.Events(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("involvedObject.name", name).String(),
	})
	if err != nil {
		return nil, unreadable("events", err)
	}
	return list.Items, ""
}

// console returns the last lines of the guest's serial console, or why they
// could not be read. KubeVirt keeps them in a container of the launcher pod.
func (s *Store) console(ctx context.Context, namespace string, pods []corev1.Pod) (text, unread string) {
	launcher := newestRunning(pods)
	if launcher == nil {
		return "", ""
	}
	log, err := s.client.Core.Pods(namespace).GetLogs(launcher.Name, &corev1.PodLogOptions{
		Container: vm.ConsoleContainer,
		TailLines: new(int64(consoleLines)),
	}).DoRaw(ctx)
	if apierrors.IsForbidden(err) { // of a log the server's sentence is lost
		return "", "the guest's console may not be read: the verb get on pods/log is missing"
	}
	if err != nil {
		return "", unreadable(fmt.Sprintf("the guest's console (pod %s, container %s)", launcher.Name, vm.ConsoleContainer), err)
	}
	return string(log), ""
}

// newestRunning picks the pod that holds the guest now: after a migration or a
// restart an ended one may stand beside it.
func newestRunning(pods []corev1.Pod) *corev1.Pod {
	var newest *corev1.Pod
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		if newest == nil || newest.CreationTimestamp.Before(&pod.CreationTimestamp) {
			newest = pod
		}
	}
	return newest
}
