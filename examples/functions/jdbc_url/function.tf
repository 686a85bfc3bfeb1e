output "orders" {
  sensitive = true
  value = provider::dbaas::jdbc_url({
    host     = dbaas_instance.orders.address
    port     = dbaas_instance.orders.port
    dbname   = dbaas_instance.orders.db_name
    username = "app"
    password = var.app_password # percent-encoded where it has to be
  })
}
