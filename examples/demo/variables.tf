variable "kubeconfig" {
  description = "Kubeconfig file of the cluster; the lab's tenant by default."
  type        = string
  default     = "../../.lab/tenant.kubeconfig"
}

variable "name" {
  description = "Name of the instance."
  type        = string
  default     = "demo"
}

variable "namespace" {
  description = "Namespace of the instance."
  type        = string
  default     = "tenant-acme"
}

variable "network_ref" {
  description = "NetworkAttachmentDefinition of the instance, namespace/name."
  type        = string
  default     = "default/vm-net-100"
}

variable "engine_version" {
  description = "PostgreSQL major; 15 is what Debian 12 has."
  type        = string
  default     = "15"
}

variable "os_image" {
  description = "VirtualMachineImage of the OS disk."
  type        = string
  default     = "default/debian-12"
}
