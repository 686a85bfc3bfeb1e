# One instance for each entry: adding or removing one leaves the others alone.
variable "databases" {
  description = "The databases by name."
  type = map(object({
    class   = string
    storage = number # GiB
  }))
  default = {
    several-orders  = { class = "db.t3.small", storage = 20 }
    several-billing = { class = "db.t3.micro", storage = 10 }
  }
}

resource "dbaas_instance" "each" {
  for_each = var.databases

  name                        = each.key
  namespace                   = var.namespace
  instance_class              = each.value.class
  allocated_storage           = each.value.storage
  network_ref                 = var.network_ref
  engine_version              = "15"
  os_image                    = var.os_image
  manage_master_user_password = true
}

output "endpoints" {
  value = { for name, instance in dbaas_instance.each : name => instance.endpoint }
}
