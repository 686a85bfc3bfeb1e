package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

// report is the one way from an error to a diagnostic: what happened, why, and
// what to do, each a paragraph of its own.
func report(diags *diag.Diagnostics, summary string, err error) {
	detail := strings.Join(append([]string{sentence(err.Error())}, advice(err)...), "\n\n")
	if field, ok := errors.AsType[*instance.FieldError](err); ok && field.Field != "" {
		diags.AddAttributeError(path.Root(string(field.Field)), summary, detail)
		return
	}
	diags.AddError(summary, detail)
}

// advice is what to do about an error, from the innermost cause out. There
// always is some.
func advice(err error) []string {
	var result []string
	if denial, ok := instance.Denied(err); ok {
		result = append(result, missingRule(denial))
	}
	if field, ok := errors.AsType[*instance.FieldError](err); ok && field.Advice != "" {
		result = append(result, field.Advice)
	}
	if refusal, ok := errors.AsType[*instance.RefusalError](err); ok && refusal.Advice != "" {
		result = append(result, refusal.Advice)
	}
	if secret, ok := errors.AsType[*instance.SecretError](err); ok {
		result = append(result, secret.Advice())
	}
	switch {
	case errors.Is(err, instance.ErrNotFound):
		result = append(result, "Plan again: the next plan creates the instance.")
	case errors.Is(err, context.Canceled):
		result = append(result, "The run was interrupted. What already stands is in the state; the next apply goes on from there.")
	case errors.Is(err, context.DeadlineExceeded):
		result = append(result, "If the cluster only needs longer, raise the limit in timeouts.")
	}
	if unavailable, ok := errors.AsType[*instance.UnavailableError](err); ok {
		result = append(result, unavailableAdvice(unavailable))
	}
	if len(result) == 0 {
		result = append(result, causeAdvice(instance.CauseOf(err)))
	}
	if leftover, ok := errors.AsType[*instance.LeftoverError](err); ok && len(leftover.Secrets) > 0 {
		result = append(result, fmt.Sprintf("No virtual machine was created. Of this instance only Secrets stand, if anything, and the next apply uses them again, so that CA and password stay. To give it up instead, remove them:\n\n  kubectl -n %s delete secret %s",
			leftover.Namespace, strings.Join(leftover.Secrets, " ")))
	}
	return result
}

// causeAdvice is for failures of which nothing more special is known.
func causeAdvice(cause instance.Cause) string {
	switch cause {
	case instance.CauseUnreachable:
		return "Check that the Kubernetes API answers at the address that the provider block, or its kubeconfig, names: kubectl get --raw /version. Then try again."
	case instance.CauseUntrusted:
		return "Check cluster_ca_certificate, tls_server_name and the client certificate, or the kubeconfig that holds them."
	case instance.CauseUnauthenticated:
		return "The API server does not accept the credentials. Renew the token, the client certificate or the kubeconfig."
	case instance.CauseRefused:
		return "The cluster refused this and says why. Correct what it names, then try again."
	case instance.CauseTaken:
		return "Somebody else writes the same object. Find out who, then try again."
	case instance.CauseUnserved:
		return "The cluster does not serve this kind of object. Check that it is a Harvester and that its KubeVirt runs: kubectl get apiservices."
	case instance.CauseBusy:
		return "The API server, or a webhook that it asks, cannot answer for now. Look after the cluster, then try again."
	default:
		return "Try again. If the error stays, " + fault
	}
}

// fault is what to do where nobody but the provider's authors can help.
const fault = "report it with the provider's version and the log that TF_LOG=debug makes."

func unavailableAdvice(err *instance.UnavailableError) string {
	switch {
	case err.TakenBack:
		return "The guest refused what the apply changed, and the earlier settings are written down again: the state shows them. " +
			"If it was PostgreSQL that refused a setting, the database serves on with the earlier ones. Correct the configuration and apply again, which restarts the virtual machine."
	case err.Update:
		return "The instance and its data are as they were; what was changed is written down. Correct the cause and apply again: the next apply goes on from there."
	}
	if err.Hopeless {
		return "Waiting longer would not have helped. The instance is in the state and marked as tainted: correct the cause and apply again, which replaces it. " +
			"If it can still become available by itself, `terraform untaint` keeps it, and the next apply goes on waiting."
	}
	return "The instance is in the state and marked as tainted: the next apply replaces it. " +
		"To keep it and go on waiting, run `terraform untaint` first."
}

func missingRule(d instance.Denial) string {
	where := "in a ClusterRole bound to it"
	if d.Namespace != "" {
		where = fmt.Sprintf("in a Role of namespace %s", d.Namespace)
	}
	return fmt.Sprintf("The account that the provider uses may not %s %s. It needs this rule, %s:\n\n  apiGroups: [%q], resources: [%q], verbs: [%q]\n\n"+
		"All that the provider needs there is in examples/rbac/%s, which its documentation shows.",
		d.Verb, d.Resource, where, d.Group, d.Resource, d.Verb, manifest(d.Resource))
}

// manifest is the file of examples/rbac that has the rules for a resource.
func manifest(resource string) string {
	switch resource {
	case "virtualmachineimages", "network-attachment-definitions":
		return "images-and-networks-role.yaml"
	case "storageclasses", "storageprofiles":
		return "storage-clusterrole.yaml"
	default:
		return "tenant-role.yaml"
	}
}

// refused is an error about the plan itself: what happened and what to do.
func refused(diags *diag.Diagnostics, at path.Path, summary string, paragraphs ...string) {
	diags.AddAttributeError(at, summary, strings.Join(paragraphs, "\n\n"))
}

// warn reports what did not go well in an operation that succeeded.
func warn(diags *diag.Diagnostics, summary string, warnings []string) {
	for _, text := range warnings {
		diags.AddWarning(summary, sentence(text))
	}
}

// wrongType is for conversions that fail only if schema and model disagree.
func wrongType(name string, diags diag.Diagnostics) error {
	return fmt.Errorf("read %s: %s", name, diags.Errors()[0].Detail())
}

// sentence turns an error's text into a sentence, unless it begins with a name.
func sentence(text string) string {
	if text == "" {
		return text
	}
	first, _, _ := strings.Cut(text, " ")
	if strings.IndexFunc(strings.TrimRight(first, ",:;"), func(r rune) bool { return !unicode.IsLetter(r) }) < 0 {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	if strings.ContainsAny(text[len(text)-1:], ".!?\n") {
		return text
	}
	return text + "."
}

// lastStep is the name at the end of a path, for a summary.
func lastStep(p path.Path) string {
	for _, step := range slices.Backward(p.Steps()) {
		if name, ok := step.(path.PathStepAttributeName); ok {
			return string(name)
		}
	}
	return "value"
}
