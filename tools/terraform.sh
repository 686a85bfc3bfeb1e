#!/usr/bin/env bash
# terraform.sh: prints the path of Terraform; where there is none, of OpenTofu;
# where there is none either, of an OpenTofu that it builds as bin/tofu.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v terraform || command -v tofu || {
  echo 'neither terraform nor tofu is installed: building OpenTofu, some minutes the first time' >&2
  make --no-print-directory tofu >&2
  echo "$PWD/bin/tofu"
}
