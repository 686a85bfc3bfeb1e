data "dbaas_instances" "payments" {
  namespace      = "tenant-acme"
  label_selector = "tag.harvesterhci.io/team=payments"
  status         = "available"
}

output "addresses" {
  value = { for instance in data.dbaas_instances.payments.instances : instance.name => instance.endpoint }
}
