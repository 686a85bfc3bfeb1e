#!/usr/bin/env bash
# audit.sh: are there known vulnerabilities in what the provider calls? The
# database, too, comes through the Go module proxy: nothing else is contacted.
set -euo pipefail
cd "$(dirname "$0")/.."

# A newer one knows more: https://pkg.go.dev/golang.org/x/vulndb
version=v0.0.0-20261105234957-e22db6528018
database=${XDG_CACHE_HOME:-$HOME/.cache}/terraform-provider-dbaas/vulndb/$version

if [ ! -d "$database" ]; then
  echo "making the database of vulnerabilities, about a minute: $database"
  reports=$(cd / && go mod download -json "golang.org/x/vulndb@$version" | sed -n 's/^.*"Dir": "\(.*\)".*$/\1/p')
  mkdir -p "$(dirname "$database")"
  scratch=$(mktemp -d "$database.XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  go run "golang.org/x/vulndb/cmd/indexdb@$version" -vulns "$reports/data/osv" -out "$scratch"
  mv "$scratch" "$database"
fi

go tool -modfile=tools/go.mod govulncheck -db "file://$database" ./...
