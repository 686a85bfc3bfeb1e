package node

import (
	"context"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/internal/knobs"
)

// Harvester's webhook registrations, and where they are kept while they are not
// as they should be.
const (
	validatorName = "harvester-validator"
	mutatorName   = "harvester-mutator"
	savedWebhooks = "lab-webhooks"
	closedPort    = 1
)

// breakWebhooks makes Harvester's webhooks refuse connections ("down"), removes
// them ("removed") or restores them ("").
func (c *cluster) breakWebhooks(ctx context.Context, how string) error {
	saved := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: knobs.ConfigMapNamespace, Name: savedWebhooks}}
	err := c.live.Get(ctx, client.ObjectKeyFromObject(saved), saved)
	if apierrors.IsNotFound(err) {
		if how == "" {
			return nil
		}
		err = c.saveWebhooks(ctx, saved)
	}
	if err != nil {
		return fmt.Errorf("keep Harvester's webhooks: %w", err)
	}
	for _, hook := range []client.Object{
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: validatorName}},
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: mutatorName}},
	} {
		if how == "removed" {
			if err := c.Delete(ctx, hook); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("remove webhook %s: %w", hook.GetName(), err)
			}
			continue
		}
		if err := json.Unmarshal([]byte(saved.Data[hook.GetName()]), hook); err != nil {
			return fmt.Errorf("parse the kept webhook %s: %w", hook.GetName(), err)
		}
		if how == "down" {
			refuse(hook)
		}
		if err := c.replace(ctx, hook); err != nil {
			return fmt.Errorf("restore webhook %s: %w", hook.GetName(), err)
		}
	}
	if how == "" {
		return client.IgnoreNotFound(c.Delete(ctx, saved))
	}
	return nil
}

// saveWebhooks writes both registrations into a ConfigMap, so that they can be
// restored after this process has died.
func (c *cluster) saveWebhooks(ctx context.Context, saved *corev1.ConfigMap) error {
	saved.Data = map[string]string{}
	for name, hook := range map[string]client.Object{
		validatorName: &admissionv1.ValidatingWebhookConfiguration{}, mutatorName: &admissionv1.MutatingWebhookConfiguration{},
	} {
		if err := c.live.Get(ctx, client.ObjectKey{Name: name}, hook); err != nil {
			return err
		}
		hook.SetResourceVersion("")
		hook.SetUID("")
		hook.SetManagedFields(nil)
		data, err := json.Marshal(hook)
		if err != nil {
			return err
		}
		saved.Data[name] = string(data)
	}
	return c.Create(ctx, saved)
}

// refuse sends a registration's requests to a port where nobody listens.
func refuse(hook client.Object) {
	switch h := hook.(type) {
	case *admissionv1.ValidatingWebhookConfiguration:
		for i := range h.Webhooks {
			closeDoor(&h.Webhooks[i].ClientConfig)
			h.Webhooks[i].FailurePolicy = new(admissionv1.Fail)
		}
	case *admissionv1.MutatingWebhookConfiguration:
		for i := range h.Webhooks {
			closeDoor(&h.Webhooks[i].ClientConfig)
		}
	}
}

func closeDoor(to *admissionv1.WebhookClientConfig) {
	if to.Service != nil {
		to.Service.Port = new(int32(closedPort))
	}
	if to.URL != nil {
		to.URL = new(fmt.Sprintf("https://127.0.0.1:%d/", closedPort))
	}
}

// replace creates the object or overwrites what is there.
func (c *cluster) replace(ctx context.Context, o client.Object) error {
	now := o.DeepCopyObject().(client.Object)
	err := c.live.Get(ctx, client.ObjectKeyFromObject(o), now)
	if apierrors.IsNotFound(err) {
		return c.Create(ctx, o)
	}
	if err != nil {
		return err
	}
	o.SetResourceVersion(now.GetResourceVersion())
	o.SetUID(now.GetUID())
	return c.Update(ctx, o)
}
