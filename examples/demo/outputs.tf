output "address" {
  value = dbaas_instance.demo.address
}

output "port" {
  value = dbaas_instance.demo.port
}

output "dbname" {
  value = dbaas_instance.demo.db_name
}

output "username" {
  value = dbaas_instance.demo.master_username
}

output "password" {
  value     = dbaas_instance.demo.master_password
  sensitive = true
}

output "ca" {
  value = dbaas_instance.demo.ca_cert_pem
}

output "connection_uri" {
  value = dbaas_instance.demo.connection_uri
}
