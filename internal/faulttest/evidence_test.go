package faulttest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kinds are those of which an instance can have objects.
func kinds() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"},
		{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"},
		{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"},
		{Version: "v1", Resource: "persistentvolumeclaims"},
		{Version: "v1", Resource: "secrets"},
		{Version: "v1", Resource: "services"},
		{Version: "v1", Resource: "endpoints"},
		{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
		{Group: "monitoring.coreos.com", Version: "v1", Resource: "servicemonitors"},
	}
}

// evidence is what stands of an instance, as far as it can be lost or leaked.
type evidence struct {
	name string
	// material are the values of the credentials Secret; nil when there is none.
	material map[string]string
	// uids by kind and name.
	uids map[string]string
	// others are all objects but the credentials Secret, in JSON, Secrets decoded.
	others map[string][]byte
}

// evidence reads what stands with an instance's label.
func (l *lab) evidence(ctx context.Context, name string) (*evidence, error) {
	e := &evidence{name: name, uids: map[string]string{}, others: map[string][]byte{}}
	for _, kind := range kinds() {
		list, err := l.dynamic.Resource(kind).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: "dbaas.opencloud.wso2.com/instance=" + name})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", kind.Resource, err)
		}
		for i := range list.Items {
			if err := e.take(kind.Resource, &list.Items[i]); err != nil {
				return nil, err
			}
		}
	}
	return e, nil
}

// left lists what stands under an instance's name, labelled or not.
func (l *lab) left(ctx context.Context, name string) ([]string, error) {
	var all []string
	for _, kind := range kinds() {
		list, err := l.metadata.Resource(kind).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", kind.Resource, err)
		}
		for _, found := range list.Items {
			named := found.Name == "pg-"+name || strings.HasPrefix(found.Name, "pg-"+name+"-")
			if named || found.Labels["dbaas.opencloud.wso2.com/instance"] == name {
				all = append(all, kind.Resource+" "+found.Name)
			}
		}
	}
	return all, nil
}

func (e *evidence) take(resource string, found *unstructured.Unstructured) error {
	e.uids[resource+" "+found.GetName()] = string(found.GetUID())
	data := map[string]string{}
	if resource == "secrets" {
		encoded, _, err := unstructured.NestedStringMap(found.Object, "data")
		if err != nil {
			return err
		}
		for key, value := range encoded {
			plain, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				return err
			}
			data[key] = string(plain)
		}
		if found.GetName() == "pg-"+e.name+"-credentials" {
			e.material = data
			return nil
		}
	}
	text, err := json.Marshal(found.Object)
	if err != nil {
		return err
	}
	for _, plain := range data {
		text = append(text, plain...)
	}
	e.others[resource+" "+found.GetName()] = text
	return nil
}

func (e *evidence) uid(resource, suffix string) string {
	return e.uids[resource+" pg-"+e.name+suffix]
}

// secrets are the texts that may stand in their places only, by name.
func (e *evidence) secrets() map[string]string {
	found := map[string]string{}
	for _, key := range []string{"admin_password", "admin_password_next"} {
		if value := e.material[key]; value != "" {
			found[key] = value
		}
	}
	// A key of several lines is indented elsewhere: one line of it tells.
	if lines := strings.Split(e.material["ca_key"], "\n"); len(lines) > 2 {
		found["ca_key"] = lines[1]
	}
	return found
}

// leak says which secret stands outside of its place on the cluster. Of the
// first boot's CA key the guest's document is a place too.
func (e *evidence) leak() string {
	for key, value := range e.secrets() {
		for object, text := range e.others {
			if key == "ca_key" && strings.HasPrefix(object, "secrets ") && strings.HasSuffix(object, "-cloudinit") {
				continue
			}
			if bytes.Contains(text, []byte(value)) {
				return fmt.Sprintf("%s stands in %s", key, object)
			}
		}
	}
	return ""
}

// leakIn says which secret stands in what Terraform keeps or shows. The state
// may hold the password, once: as master_password.
func (e *evidence) leakIn(o *object, said *verdicts) string {
	for key, value := range e.secrets() {
		if strings.Contains(said.all(), value) {
			return key + " stands in a diagnostic"
		}
		if o == nil {
			continue
		}
		if bytes.Contains(o.Private, []byte(value)) || bytes.Contains(o.Identity, []byte(value)) {
			return key + " stands in private state or identity"
		}
		allowed := 0
		if key == "admin_password" {
			allowed = 1
		}
		if bytes.Count(o.State, []byte(value)) > allowed {
			return key + " stands in the state where it should not"
		}
	}
	return ""
}

// lost says what of an instance is another or gone. What was not there before
// cannot be lost.
func (e *evidence) lost(before *evidence, rotated bool) string {
	for _, key := range []string{"admin_user", "admin_password", "ca_cert", "instance_id", "mac_address"} {
		was, is := before.material[key], e.material[key]
		if key == "admin_password" && rotated {
			continue
		}
		if was != "" && was != is {
			return key + " of the credentials Secret is another or gone"
		}
	}
	if was := before.uid("persistentvolumeclaims", "-data"); was != "" && was != e.uid("persistentvolumeclaims", "-data") {
		return "the data volume is another or gone"
	}
	return ""
}
