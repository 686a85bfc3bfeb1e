terraform {
  required_providers {
    dbaas = {
      source = "wso2/dbaas"
    }
  }
}

provider "dbaas" {
  config_path = var.kubeconfig
}

resource "dbaas_instance" "demo" {
  name              = var.name
  namespace         = var.namespace
  instance_class    = "db.t3.micro"
  allocated_storage = 1
  network_ref       = var.network_ref
  engine_version    = var.engine_version
  os_image          = var.os_image
}
