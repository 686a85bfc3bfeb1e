# terraform test: no cluster is needed, the provider is mocked.
mock_provider "dbaas" {}

variables {
  name        = "orders"
  namespace   = "tenant-acme"
  network_ref = "default/vm-net-100"
  os_image    = "default/debian-12"
}

run "production_is_protected" {
  command = plan

  assert {
    condition     = dbaas_instance.this.deletion_protection && dbaas_instance.this.deletion_policy == "retain"
    error_message = "A production database can be destroyed with its data."
  }
  assert {
    condition     = dbaas_instance.this.manage_master_user_password
    error_message = "The password would stand in the state."
  }
  assert {
    condition     = dbaas_instance.this.tags["env"] == "production"
    error_message = "The environment is not in the tags."
  }
}

run "sizes_are_classes" {
  command = plan
  variables {
    size       = "large"
    production = false
  }

  assert {
    condition     = dbaas_instance.this.instance_class == "db.r5.xlarge" && dbaas_instance.this.deletion_policy == "delete"
    error_message = "The size large is another class, or a test database keeps its data."
  }
}

run "unknown_sizes_are_refused" {
  command = plan
  variables {
    size = "huge"
  }

  expect_failures = [var.size]
}
