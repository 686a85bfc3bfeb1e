# Terraform 1.14 or newer: terraform apply -invoke=action.dbaas_restart.orders
action "dbaas_restart" "orders" {
  config {
    id      = dbaas_instance.orders.id
    timeout = "20m"
  }
}
