# The values of the lab that this repository's tests use.
namespace   = "tenant-acme"
network_ref = "default/vm-net-100"
os_image    = "default/debian-12"
