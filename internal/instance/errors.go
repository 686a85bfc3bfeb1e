package instance

import (
	"errors"
	"fmt"
)

// Field names the argument of the instance that an error or finding is about,
// as the user writes it.
type Field string

// The fields that the cluster can object to.
const (
	FieldName          Field = "name"
	FieldNamespace     Field = "namespace"
	FieldClass         Field = "instance_class"
	FieldStorage       Field = "allocated_storage"
	FieldNetwork       Field = "network_ref"
	FieldEngine        Field = "engine_version"
	FieldDatabase      Field = "db_name"
	FieldUser          Field = "master_username"
	FieldPort          Field = "port"
	FieldImage         Field = "os_image"
	FieldStorageType   Field = "storage_type"
	FieldStaticNetwork Field = "static_network"
	FieldParameters    Field = "parameters"
	FieldExtensions    Field = "extensions"
	FieldAllowedCIDRs  Field = "allowed_cidrs"
	FieldDNSNames      Field = "dns_names"
	FieldSSHPublicKeys Field = "ssh_public_keys"
	FieldMonitoring    Field = "monitoring"
	FieldPassword      Field = "master_password_wo"
	FieldProtection    Field = "deletion_protection"
)

// ErrNotFound says that nothing of the instance stands any more: no virtual
// machine, and neither its data volume nor its credentials Secret.
var ErrNotFound = errors.New("instance not found")

// FieldError is an error about one argument. Advice, when not empty, says what
// to do.
type FieldError struct {
	Field  Field
	Err    error
	Advice string
}

// Error returns the cause, without the field's name: callers point at the field.
func (e *FieldError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *FieldError) Unwrap() error { return e.Err }

// RefusalError says that an operation was not begun because something
// guards the instance. Nothing was sent to the cluster.
type RefusalError struct {
	Err    error
	Advice string // what to do
}

// Error returns why the operation was refused.
func (e *RefusalError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RefusalError) Unwrap() error { return e.Err }

func refuse(advice, format string, args ...any) error {
	return &RefusalError{Err: fmt.Errorf(format, args...), Advice: advice}
}

// LeftoverError wraps the failure of a create that leaves only Secrets behind.
// The next create of the same name reuses them.
type LeftoverError struct {
	Err       error
	Namespace string
	Secrets   []string
}

// Error returns the cause; the Secrets are told by the caller's message.
func (e *LeftoverError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *LeftoverError) Unwrap() error { return e.Err }

// UnavailableError says that a standing instance did not become available.
type UnavailableError struct {
	Reason string // one of the documented status reasons
	Detail string // what was last seen
	// Hopeless says that waiting longer would not have helped.
	Hopeless bool
	Err      error // the context's error, nil when hopeless
	// Update says that the instance had served before.
	Update bool
	// TakenBack says that the guest's earlier configuration is written down
	// again, since the guest refused the new one.
	TakenBack bool
}

// Error returns the reason and what was last seen.
func (e *UnavailableError) Error() string {
	if e.Hopeless {
		return fmt.Sprintf("wait for instance: cannot become available (%s): %s", e.Reason, e.Detail)
	}
	return fmt.Sprintf("wait for instance: not available in time (%s): %s", e.Reason, e.Detail)
}

// Unwrap returns the context's error, if time ran out.
func (e *UnavailableError) Unwrap() error { return e.Err }
