# The values of the lab that this repository's tests use.
namespace   = "tenant-acme"
network_ref = "default/vm-net-100"
os_image    = "default/debian-12"

client_cidrs     = ["198.18.0.0/15"]
prometheus_cidrs = ["198.18.0.0/15"]

static_network = {
  address     = "198.18.0.77/24"
  gateway     = "198.18.0.1"
  nameservers = ["198.18.0.1"]
}
