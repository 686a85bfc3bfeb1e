terraform {
  required_providers {
    dbaas = {
      source = "wso2/dbaas"
    }
  }
}
