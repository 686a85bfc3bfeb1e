# An instance that another state, or the DBaaS operator, manages.
data "dbaas_instance" "orders" {
  namespace = "tenant-acme"
  name      = "orders"
}

output "orders" {
  value = data.dbaas_instance.orders.connection_uri
}
