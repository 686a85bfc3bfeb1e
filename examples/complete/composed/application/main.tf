# Stands for an application's own module, which would make a Deployment of this.
variable "database_host" {
  type = string
}

variable "database_port" {
  type = number
}

variable "database_name" {
  type = string
}

variable "database_ca_cert_pem" {
  type = string
}

variable "database_secret" {
  type = string
}

resource "terraform_data" "settings" {
  input = {
    PGHOST      = var.database_host
    PGPORT      = tostring(var.database_port)
    PGDATABASE  = var.database_name
    PGSSLMODE   = "verify-full"
    ca_sha256   = sha256(var.database_ca_cert_pem)
    credentials = var.database_secret
  }
}

output "settings" {
  value = terraform_data.settings.output
}
