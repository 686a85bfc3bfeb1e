package harvester

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/harvester/harvester/pkg/webhook/clients"
	"github.com/harvester/harvester/pkg/webhook/config"
	"github.com/harvester/harvester/pkg/webhook/indexeres"
	"github.com/harvester/harvester/pkg/webhook/server"
	"github.com/harvester/harvester/pkg/webhook/types"
	admission "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The paths at which Harvester's own server answers.
const (
	validationPath = "/v1/webhook/validation"
	mutationPath   = "/v1/webhook/mutation"
)

// startWebhooks serves the handlers and registers them with the API server. It
// does what Harvester's own server does, except that the certificate is the
// lab's: Harvester's waits for a Secret and then for its webhooks to be called.
func startWebhooks(ctx context.Context, cfg *rest.Config, o options, failed chan<- error) error {
	const withKubeOVN = false
	all, err := clients.New(ctx, cfg, threads, withKubeOVN)
	if err != nil {
		return fmt.Errorf("make clients: %w", err)
	}
	indexeres.RegisterIndexers(all)
	settings := &config.Options{
		Namespace:       Namespace,
		Threadiness:     threads,
		HTTPSListenPort: o.port,
		// These may do what the webhooks refuse to everyone else.
		HarvesterControllerUsername: "system:serviceaccount:" + Namespace + ":harvester",
		GarbageCollectionUsername:   "system:serviceaccount:kube-system:generic-garbage-collector",
	}
	validation, validated, err := server.Validation(all, settings, withKubeOVN)
	if err != nil {
		return fmt.Errorf("make validators: %w", err)
	}
	mutation, mutated, err := server.Mutation(all, settings, withKubeOVN)
	if err != nil {
		return fmt.Errorf("make mutators: %w", err)
	}
	if err := all.Start(ctx); err != nil {
		return fmt.Errorf("fill caches: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle(validationPath, validation)
	mux.Handle(mutationPath, mutation)
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port)))
	if err != nil {
		return err
	}
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		failed <- fmt.Errorf("serve webhooks: %w", web.ServeTLS(listener, o.certificate, o.key))
	}()
	authority, err := os.ReadFile(o.authority)
	if err != nil {
		return fmt.Errorf("read certificate authority: %w", err)
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	return register(ctx, kube, registration{authority: authority, port: int32(o.port), validated: validated, mutated: mutated})
}

// A registration is what the API server must know about the webhooks.
type registration struct {
	authority          []byte
	port               int32
	validated, mutated []types.Resource
}

// register creates the two webhook configurations that Harvester creates.
func register(ctx context.Context, kube kubernetes.Interface, r registration) error {
	versions := []string{"v1", "v1beta1"}
	validating := &admission.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "harvester-validator"},
		Webhooks: []admission.ValidatingWebhook{{
			Name: "validator.harvesterhci.io", ClientConfig: r.client(validationPath), Rules: rules(r.validated),
			FailurePolicy: new(admission.Fail), SideEffects: new(admission.SideEffectClassNone), AdmissionReviewVersions: versions,
		}},
	}
	mutating := &admission.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "harvester-mutator"},
		Webhooks: []admission.MutatingWebhook{{
			Name: "mutator.harvesterhci.io", ClientConfig: r.client(mutationPath), Rules: rules(r.mutated),
			FailurePolicy: new(admission.Ignore), SideEffects: new(admission.SideEffectClassNone), AdmissionReviewVersions: versions,
		}},
	}
	api := kube.AdmissionregistrationV1()
	if _, err := api.ValidatingWebhookConfigurations().Create(ctx, validating, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("register validators: %w", err)
	}
	if _, err := api.MutatingWebhookConfigurations().Create(ctx, mutating, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("register mutators: %w", err)
	}
	return nil
}

func (r registration) client(path string) admission.WebhookClientConfig {
	return admission.WebhookClientConfig{
		CABundle: r.authority,
		Service:  &admission.ServiceReference{Namespace: Namespace, Name: "harvester-webhook", Path: &path, Port: &r.port},
	}
}

func rules(resources []types.Resource) []admission.RuleWithOperations {
	var out []admission.RuleWithOperations
	for _, r := range resources {
		out = append(out, admission.RuleWithOperations{
			Operations: r.OperationTypes,
			Rule: admission.Rule{
				APIGroups: []string{r.APIGroup}, APIVersions: []string{r.APIVersion},
				Resources: r.Names, Scope: new(r.Scope),
			},
		})
	}
	return out
}
