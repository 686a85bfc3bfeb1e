#!/usr/bin/env bash
# packages.sh CACHE sim|container|vm: what a lab needs of Debian.
#
# Two kinds: tools are installed with apt-get when their command is missing;
# etcd and systemd-nspawn are only unpacked below CACHE/debs, so that the host
# gets no etcd service and keeps its own systemd. Packages come from wherever
# the host's apt is configured to take them.
set -euo pipefail

cache=${1:?folder for unpacked packages}
guest=${2:?sim, container or vm}
updated=

say() { printf 'packages: %s\n' "$*"; }

die() {
  say "$*" >&2
  exit 1
}

# refresh runs apt-get update, at most once.
refresh() {
  [ -z "$updated" ] || return 0
  [ "$(id -u)" = 0 ] || die "the package lists are missing or old; run apt-get update as root"
  say "refreshing the package lists"
  apt-get update -qq
  updated=yes
}

# need COMMAND PACKAGE: installs PACKAGE unless COMMAND is there.
need() {
  PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null && return 0
  [ "$(id -u)" = 0 ] || die "$1 is missing; install the package $2, or run this as root"
  say "installing $2 (for $1)"
  local install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2")
  "${install[@]}" >/dev/null 2>&1 && return 0
  refresh
  "${install[@]}" >/dev/null
}

# unpack FOLDER PACKAGE...: unpacks the packages together into CACHE/debs/FOLDER.
unpack() {
  local folder=$cache/debs/$1 work
  shift
  [ ! -e "$folder" ] || return 0
  say "unpacking $* into $folder"
  mkdir -p "$cache/debs"
  work=$(mktemp -d "$cache/debs/.unpack.XXXXXX")
  chmod 755 "$work"
  mkdir "$work/deb" "$work/root"
  # apt drops its rights to the user _apt, which must be able to write here.
  [ "$(id -u)" != 0 ] || chown _apt "$work/deb" 2>/dev/null || true
  (cd "$work/deb" && apt-get download -qq "$@" >/dev/null 2>&1) ||
    { refresh && (cd "$work/deb" && apt-get download -qq "$@"); }
  for deb in "$work"/deb/*.deb; do
    dpkg-deb -x "$deb" "$work/root"
  done
  # Another lab may have been faster: its folder is as good as ours.
  mv -T "$work/root" "$folder" 2>/dev/null || [ -e "$folder" ] || die "cannot create $folder"
  rm -rf "$work"
}

for tool in apt-get dpkg-deb; do
  command -v "$tool" >/dev/null ||
    die "$tool is missing: the lab takes etcd and its guests from a Debian system"
done

unpack etcd-server etcd-server

case $guest in
sim) ;;
container | vm)
  [ "$(id -u)" = 0 ] || die "a $guest guest needs root; use the guest sim"
  need mmdebstrap mmdebstrap
  need ip iproute2
  need mkfs.ext4 e2fsprogs
  need losetup mount
  need psql postgresql-client
  ;;&
container)
  unpack systemd-container systemd-container libsystemd-shared
  ;;
vm)
  need qemu-system-x86_64 qemu-system-x86
  need qemu-img qemu-utils
  need genisoimage genisoimage
  need lz4 lz4
  need xz xz-utils
  ;;
*) die "there is no guest $guest: sim, container or vm" ;;
esac
