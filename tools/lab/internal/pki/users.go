package pki

import (
	"crypto/rand"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// TenantUser is the plain user whose rights are those that we document.
const TenantUser = "terraform"

// A user of the lab's API server.
type user struct {
	// file is the name of the token and kubeconfig files.
	file, name string
	groups     []string
}

// users lists who may talk to the API server. KubeVirt's webhooks and
// Harvester's let their own service accounts do what they refuse to others, so
// the names are the ones that they have on a cluster.
func users() []user {
	account := func(file, namespace, name string) user {
		return user{
			file, "system:serviceaccount:" + namespace + ":" + name,
			[]string{"system:masters", "system:serviceaccounts", "system:serviceaccounts:" + namespace},
		}
	}
	return []user{
		{"admin", "admin", []string{"system:masters"}},
		{"tenant", TenantUser, []string{"tenants"}},
		account("virt-api", "kubevirt", "kubevirt-apiserver"),
		account("virt-controller", "kubevirt", "kubevirt-controller"),
		account("node", "kubevirt", "kubevirt-handler"),
		account("harvester", "harvester-system", "harvester"),
	}
}

// CreateUsers draws a token for every user and writes tokens.csv for the API
// server, and NAME.token and NAME.kubeconfig for the pieces.
func CreateUsers(folder, server string) error {
	var tokens strings.Builder
	table := csv.NewWriter(&tokens)
	for _, u := range users() {
		token := rand.Text()
		if err := table.Write([]string{token, u.name, "uid-" + u.file, strings.Join(u.groups, ",")}); err != nil {
			return err
		}
		tokenFile := filepath.Join(folder, u.file+".token")
		if err := os.WriteFile(tokenFile, []byte(token), 0o600); err != nil {
			return err
		}
		// KubeVirt's pieces lose a token that stands in the kubeconfig itself.
		config := kubeconfig(server, &api.AuthInfo{TokenFile: tokenFile})
		config.Clusters["lab"].CertificateAuthority = filepath.Join(folder, "ca.crt")
		if err := clientcmd.WriteToFile(*config, filepath.Join(folder, u.file+".kubeconfig")); err != nil {
			return err
		}
	}
	table.Flush()
	return os.WriteFile(filepath.Join(folder, "tokens.csv"), []byte(tokens.String()), 0o600)
}

// Kubeconfig writes a file for people and tests, that holds all it needs: the
// user's token, the authority and, in its context, the namespace.
func Kubeconfig(folder, user, server, namespace, file string) error {
	token, err := os.ReadFile(filepath.Join(folder, user+".token"))
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	authority, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	config := kubeconfig(server, &api.AuthInfo{Token: string(token)})
	config.Clusters["lab"].CertificateAuthorityData = authority
	config.Contexts["lab"].Namespace = namespace
	return clientcmd.WriteToFile(*config, file)
}

func kubeconfig(server string, who *api.AuthInfo) *api.Config {
	config := api.NewConfig()
	config.Clusters["lab"] = &api.Cluster{Server: server}
	config.AuthInfos["lab"] = who
	config.Contexts["lab"] = &api.Context{Cluster: "lab", AuthInfo: "lab"}
	config.CurrentContext = "lab"
	return config
}
