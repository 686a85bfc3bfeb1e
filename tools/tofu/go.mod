module github.com/wso2/terraform-provider-dbaas/tools/tofu

go 1.26.0

tool github.com/opentofu/opentofu/cmd/tofu

require github.com/opentofu/opentofu v1.12.6

// OpenTofu is built with its own fork of hcl; without it, it does not compile.
replace github.com/hashicorp/hcl/v2 v2.20.1 => github.com/opentofu/hcl/v2 v2.20.2-0.20251021132045-587d123c2828
