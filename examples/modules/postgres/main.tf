# A database as one organisation wants them: the password stays in the cluster,
# and everything is tagged.
terraform {
  required_version = ">= 1.5"
  required_providers {
    dbaas = {
      source = "wso2/dbaas"
    }
  }
}

locals {
  classes = {
    small  = "db.t3.small"
    medium = "db.m5.large"
    large  = "db.r5.xlarge"
  }
}

resource "dbaas_instance" "this" {
  name              = var.name
  namespace         = var.namespace
  instance_class    = local.classes[var.size]
  allocated_storage = var.storage
  network_ref       = var.network_ref
  engine_version    = var.engine_version
  os_image          = var.os_image

  manage_master_user_password = true
  deletion_protection         = var.production
  deletion_policy             = var.production ? "retain" : "delete"

  tags = merge(var.tags, { env = var.production ? "production" : "test" })
}
