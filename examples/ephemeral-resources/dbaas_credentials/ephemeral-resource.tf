ephemeral "dbaas_credentials" "orders" {
  id = dbaas_instance.orders.id
}

# Another provider takes them; neither state nor plan ever holds them.
provider "postgresql" {
  host            = ephemeral.dbaas_credentials.orders.host
  port            = ephemeral.dbaas_credentials.orders.port
  database        = ephemeral.dbaas_credentials.orders.dbname
  username        = ephemeral.dbaas_credentials.orders.username
  password        = ephemeral.dbaas_credentials.orders.password
  sslmode         = "verify-full"
  sslrootcert     = "${path.module}/orders-ca.pem"
  superuser       = false
  connect_timeout = 15
}
