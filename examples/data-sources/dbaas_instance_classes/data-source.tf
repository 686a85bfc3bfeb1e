data "dbaas_instance_classes" "all" {}

# The classes with at least 16 GiB.
output "large" {
  value = sort([for name, size in data.dbaas_instance_classes.all.classes : name if size.memory_mib >= 16384])
}
