package instance

import (
	"context"
	"strconv"

	"github.com/wso2/terraform-provider-dbaas/internal/pki"
	"github.com/wso2/terraform-provider-dbaas/internal/vm"
)

// readOperatorSecret completes an operator-made instance from the Secret in
// which newer operators keep the connection and the CA, if there is one. What
// the credentials Secret told already stays.
func (s *Store) readOperatorSecret(ctx context.Context, i *Instance) error {
	name := vm.NamesOf(i.Name).VM + "-connect"
	secret, err := find(ctx, s, query{"secret", i.Namespace, name}, s.client.Core.Secrets(i.Namespace).Get)
	if err != nil || secret == nil {
		return err
	}
	if certificate, err := pki.ParseCertificate(string(secret.Data["ca.crt"])); err == nil && i.CACertPEM == "" {
		i.CACertPEM, i.CAValidUntil = string(secret.Data["ca.crt"]), certificate.NotAfter
	}
	if i.DBName == "" {
		i.DBName = string(secret.Data["dbname"])
	}
	if i.Port == 0 {
		// A port that is no number is not known.
		i.Port, _ = strconv.ParseInt(string(secret.Data["port"]), 10, 64)
	}
	return nil
}
