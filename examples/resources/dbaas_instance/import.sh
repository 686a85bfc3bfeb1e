# The id is namespace/name.
terraform import dbaas_instance.orders tenant-acme/orders
