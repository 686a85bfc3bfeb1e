#!/usr/bin/env bash
# snapshot.sh: make a whole release of what stands here, publish nothing, and
# check what a registry wants of it. It is signed with a key that ends with it.
set -euo pipefail
cd "$(dirname "$0")/../.."

GNUPGHOME=$(mktemp -d)
export GNUPGHOME
trap 'gpgconf --kill all; rm -rf "$GNUPGHOME"' EXIT
gpg --batch --quiet --passphrase '' --quick-generate-key 'snapshot <snapshot@invalid>' ed25519 sign 1d
GPG_FINGERPRINT=$(gpg --batch --with-colons --list-secret-keys | awk -F: '/^fpr/ {print $10; exit}')
export GPG_FINGERPRINT

bin/goreleaser release --snapshot --clean --skip=publish --parallelism "${PARALLELISM:-1}"

cd dist
fail() {
  echo "release-snapshot: $1" >&2
  exit 1
}
name=$(basename ./*_SHA256SUMS _SHA256SUMS)
[ -f "${name}_SHA256SUMS" ] || fail 'there is no file of checksums'
gpg --batch --quiet --verify "${name}_SHA256SUMS.sig" "${name}_SHA256SUMS" || fail 'the signature does not fit the checksums'
for platform in darwin_amd64 darwin_arm64 freebsd_amd64 freebsd_arm64 linux_amd64 linux_arm64 windows_amd64; do
  zip=${name}_$platform.zip
  grep -q " $zip\$" "${name}_SHA256SUMS" || fail "the checksums lack $zip"
done
grep -q " ${name}_manifest.json\$" "${name}_SHA256SUMS" || fail 'the checksums lack the manifest'
# The manifest is a file of the repository; only its name is the release's.
cp ../terraform-registry-manifest.json "${name}_manifest.json"
sha256sum --check --quiet --strict "${name}_SHA256SUMS" || fail 'a checksum does not fit'
# Without Terraform the program says what it is, and ends with an error.
program=$(echo ./*_"$(go env GOOS)_$(go env GOARCH)"_*/terraform-provider-dbaas_v*)
{ "$program" 2>&1 || true; } | grep -q 'This binary is a plugin' || fail "$program does not start"
printf 'release-snapshot: %s, signed and checked\n' "$name"
