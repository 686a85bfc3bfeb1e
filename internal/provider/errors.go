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
	paragraphs := []string{sentence(err.Error())}
	if denial, ok := instance.Denied(err); ok {
		paragraphs = append(paragraphs, missingRule(denial))
	}
	paragraphs = append(paragraphs, advice(err)...)
	detail := strings.Join(paragraphs, "\n\n")
	if field, ok := errors.AsType[*instance.FieldError](err); ok && field.Field != "" {
		diags.AddAttributeError(path.Root(string(field.Field)), summary, detail)
		return
	}
	diags.AddError(summary, detail)
}

// advice is what to do about an error, from the innermost cause out.
func advice(err error) []string {
	var result []string
	if field, ok := errors.AsType[*instance.FieldError](err); ok && field.Advice != "" {
		result = append(result, field.Advice)
	}
	if refusal, ok := errors.AsType[*instance.RefusalError](err); ok && refusal.Advice != "" {
		result = append(result, refusal.Advice)
	}
	switch {
	case errors.Is(err, context.Canceled):
		result = append(result, "The run was interrupted. What already stands is in the state; the next apply goes on from there.")
	case errors.Is(err, context.DeadlineExceeded):
		result = append(result, "If the cluster only needs longer, raise the limit in timeouts.")
	}
	if unavailable, ok := errors.AsType[*instance.UnavailableError](err); ok {
		result = append(result, unavailableAdvice(unavailable))
	}
	if leftover, ok := errors.AsType[*instance.LeftoverError](err); ok && len(leftover.Secrets) > 0 {
		result = append(result, fmt.Sprintf("No virtual machine was created. Of this instance only Secrets stand, if anything, and the next apply uses them again, so that CA and password stay. To give it up instead, remove them:\n\n  kubectl -n %s delete secret %s",
			leftover.Namespace, strings.Join(leftover.Secrets, " ")))
	}
	return result
}

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
	return fmt.Sprintf("The account that the provider uses may not %s %s. It needs this rule, %s:\n\n  apiGroups: [%q], resources: [%q], verbs: [%q]",
		d.Verb, d.Resource, where, d.Group, d.Resource, d.Verb)
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
