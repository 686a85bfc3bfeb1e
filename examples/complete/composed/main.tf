# The reusable module makes the database, and the application's module gets what
# it needs of it: an endpoint, the CA, and the name of a Secret, no password.
module "database" {
  source = "../../modules/postgres"

  name        = "composed"
  namespace   = var.namespace
  network_ref = var.network_ref
  os_image    = var.os_image
  production  = false
  tags        = { team = "payments" }
}

module "application" {
  source = "./application"

  database_host        = module.database.host
  database_port        = module.database.port
  database_name        = module.database.database
  database_ca_cert_pem = module.database.ca_cert_pem
  database_secret      = module.database.secret_name
}

output "settings" {
  value = module.application.settings
}
