# The smallest useful configuration: PostgreSQL 15 with a generated password.
resource "dbaas_instance" "this" {
  name              = "minimal"
  namespace         = var.namespace
  instance_class    = "db.t3.micro"
  allocated_storage = 10 # GiB
  network_ref       = var.network_ref
  engine_version    = "15"
  os_image          = var.os_image
}

output "connection_uri" {
  value = dbaas_instance.this.connection_uri
}

output "ca_cert_pem" {
  value = dbaas_instance.this.ca_cert_pem
}

output "password" {
  value     = dbaas_instance.this.master_password
  sensitive = true
}
