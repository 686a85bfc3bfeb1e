variable "name" {
  description = "Name of the instance."
  type        = string
}

variable "namespace" {
  description = "Namespace of the instance; it must exist."
  type        = string
}

variable "network_ref" {
  description = "NetworkAttachmentDefinition, namespace/name."
  type        = string
}

variable "os_image" {
  description = "Debian or Ubuntu cloud image: namespace/name of a VirtualMachineImage."
  type        = string
}

variable "engine_version" {
  description = "PostgreSQL's major version."
  type        = string
  default     = "15"
}

variable "size" {
  description = "small, medium or large."
  type        = string
  default     = "small"
  validation {
    condition     = contains(["small", "medium", "large"], var.size)
    error_message = "size is small, medium or large."
  }
}

variable "storage" {
  description = "Size of the data volume in GiB; it can grow later, never shrink."
  type        = number
  default     = 20
}

variable "production" {
  description = "Whether a destroy is refused, and keeps the data."
  type        = bool
  default     = true
}

variable "tags" {
  description = "Tags of the instance."
  type        = map(string)
  default     = {}
}
