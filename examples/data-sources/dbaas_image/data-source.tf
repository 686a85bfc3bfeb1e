data "dbaas_image" "debian" {
  os_image = "default/debian-12"
}

output "os_disk_gib" {
  value = data.dbaas_image.debian.os_disk_gib
}
