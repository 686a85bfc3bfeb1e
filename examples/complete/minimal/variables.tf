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
