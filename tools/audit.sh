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

# Known, and to go: those of Go 1.26.8's standard library, in 1.26.10 fixed. A
# release is built with whatever Go is there; this list has no use after that.
known='GO-2026-6603 GO-2026-6605 GO-2026-6607 GO-2026-6608 GO-2026-6610 GO-2026-6611 GO-2026-6612 GO-2026-6613 GO-2026-6617 GO-2026-6809'

code=0
report=$(go tool -modfile=tools/go.mod govulncheck -db "file://$database" ./...) || code=$?
if ((code != 0 && code != 3)); then # 3: it found some
  echo "$report"
  exit "$code"
fi
found=$(sed -n 's/^Vulnerability #[0-9]*: //p' <<<"$report" | sort -u)
new=$(comm -23 <(echo "$found") <(tr ' ' '\n' <<<"$known" | sort))
if [ -n "$new" ]; then
  echo "$report"
  printf '\naudit: new:\n%s\n' "$new"
  exit 3
fi
printf 'nothing new; known in the standard library of %s: %s\n' "$(go env GOVERSION)" "$(tr '\n' ' ' <<<"$found")"
