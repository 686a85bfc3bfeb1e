package instance

import (
	"context"
	"strconv"

	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// Access is all that a client needs to log in.
type Access struct {
	Connection
	// Password is never empty.
	Password Password
	// CACertPEM is what the server's certificate is verified with.
	CACertPEM string
}

// Access reads how to log in to an instance that was available at some time.
// Something missing is an error, never an empty value.
func (s *Store) Access(ctx context.Context, key Key) (*Access, error) {
	st, err := s.stand(ctx, key)
	if err != nil {
		return nil, err
	}
	if st.gone(key) {
		return nil, wrap(ErrNotFound, "read credentials of instance %s", key)
	}
	in, err := st.instance(vm.Assess(st.observed()))
	if err != nil {
		return nil, err
	}
	if in.OperatorManaged {
		if err := s.readOperatorSecret(ctx, in); err != nil {
			return nil, err
		}
	} else if !st.everAvailable() {
		return nil, refuse("Read them once the instance is available: an apply waits for that, or says why it is not.",
			"read credentials of instance %s: it was never available, so nobody can log in yet (status %s, %s)", key, in.Status, in.Reason)
	}
	a := &Access{Connection: in.Connection(), Password: st.password(), CACertPEM: in.CACertPEM}
	if a.Host == "" {
		a.Host = in.LastAddress // it stands still, or is on its way
	}
	return a, st.complete(a)
}

// password is the one that logs in: of a rotation that is under way the new
// one as soon as the guest is ready with it.
func (st *standing) password() Password {
	if st.credentials == nil {
		return ""
	}
	next := st.next()
	if next != "" && st.vmi != nil && st.cloudInit != nil && vm.Assess(st.observed()).Available &&
		st.vmi.Annotations[vm.AnnotationConfigHash] == st.cloudInit.Annotations[vm.AnnotationConfigHash] {
		return Password(next)
	}
	return Password(st.credentials.Data[keyPassword])
}

// complete says what is missing.
func (st *standing) complete(a *Access) error {
	port := strconv.FormatInt(a.Port, 10)
	if a.Port == 0 {
		port = ""
	}
	for _, part := range [][2]string{
		{keyUser, a.User}, {keyPassword, string(a.Password)}, {keyCACert, a.CACertPEM}, {keyHost, a.Host}, {keyPort, port}, {keyDBName, a.DBName},
	} {
		if part[1] == "" {
			return &SecretError{Namespace: st.key.Namespace, Name: st.names.Credentials, Key: part[0], Problem: "is missing, and nothing else tells it"}
		}
	}
	return nil
}
