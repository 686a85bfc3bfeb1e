terraform {
  required_providers {
    dbaas = {
      source = "wso2/dbaas"
    }
  }
}

# The cluster that kubectl talks to: $KUBE_CONFIG_PATH, else $KUBECONFIG.
provider "dbaas" {
  namespace = "tenant-acme"
}
