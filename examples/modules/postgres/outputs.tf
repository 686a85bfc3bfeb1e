output "id" {
  description = "namespace/name: what dbaas_credentials takes."
  value       = dbaas_instance.this.id
}

output "host" {
  description = "IP address of the instance."
  value       = dbaas_instance.this.address
}

output "port" {
  description = "TCP port."
  value       = dbaas_instance.this.port
}

output "database" {
  description = "Name of the database."
  value       = dbaas_instance.this.db_name
}

output "username" {
  description = "The master user."
  value       = dbaas_instance.this.master_username
}

output "ca_cert_pem" {
  description = "Certificate to verify the server with (sslmode=verify-full)."
  value       = dbaas_instance.this.ca_cert_pem
}

output "secret_name" {
  description = "The Secret with the credentials, in the instance's namespace."
  value       = dbaas_instance.this.master_user_secret.name
}
