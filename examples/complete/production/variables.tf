variable "namespace" {
  description = "Namespace of the instances; it must exist."
  type        = string
}

variable "network_ref" {
  description = "NetworkAttachmentDefinition, namespace/name, in which clients reach the database."
  type        = string
}

variable "os_image" {
  description = "Debian or Ubuntu cloud image: namespace/name of a VirtualMachineImage."
  type        = string
}

variable "static_network" {
  description = "Fixed address of the instance; null for DHCP."
  type = object({
    address        = string
    gateway        = string
    nameservers    = list(string)
    search_domains = optional(list(string))
  })
  default = null
}

variable "client_cidrs" {
  description = "Networks whose clients may connect."
  type        = set(string)
}

variable "prometheus_cidrs" {
  description = "Networks from which Prometheus reads the metrics."
  type        = set(string)
}

variable "deletion_protection" {
  description = "Set it to false and apply before a destroy."
  type        = bool
  default     = true
}

variable "deletion_policy" {
  description = "What a destroy does with the data: retain or delete."
  type        = string
  default     = "retain"
}
