# A database that is meant to last: nothing secret in the state, a destroy is
# refused until the protection is taken off, and even then the data is kept.
resource "dbaas_instance" "orders" {
  name              = "prod-orders"
  namespace         = var.namespace
  instance_class    = "db.m5.large"
  allocated_storage = 100 # GiB
  network_ref       = var.network_ref
  engine_version    = "15"
  os_image          = var.os_image
  db_name           = "orders"
  master_username   = "orders_owner"

  manage_master_user_password = true

  deletion_protection = var.deletion_protection
  deletion_policy     = var.deletion_policy

  static_network = var.static_network
  dns_names      = ["orders.db.example.com"]
  allowed_cidrs  = var.client_cidrs

  parameters = {
    log_min_duration_statement = "500ms"
    work_mem                   = "16MB"
  }
  extensions = ["pg_stat_statements", "pgcrypto"]

  monitoring = {
    scrape_interval  = "30s"
    grafana_base_url = "https://grafana.example.com"
    allowed_cidrs    = var.prometheus_cidrs
  }

  tags = {
    team = "payments"
    env  = "production"
  }

  timeouts = {
    create = "45m"
    update = "1h"
  }
}

output "endpoint" {
  value = dbaas_instance.orders.endpoint
}

output "secret" {
  description = "The Secret with the credentials, for applications on the same cluster."
  value       = dbaas_instance.orders.master_user_secret.name
}

output "dashboard" {
  value = dbaas_instance.orders.grafana_url
}
