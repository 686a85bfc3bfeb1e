resource "dbaas_instance" "orders" {
  name              = "orders"
  namespace         = "tenant-acme"
  instance_class    = "db.t3.micro"
  allocated_storage = 10 # GiB
  network_ref       = "default/vm-net-100"
  engine_version    = "15"
  os_image          = "default/debian-12"
}
