#!/bin/bash
# bake.sh MAJOR: makes a stock Debian or Ubuntu cloud image into one that has
# PostgreSQL MAJOR, the guest agent and what else an instance may need, so that
# instances of it install nothing. Run it as root inside the image: in a machine
# that was booted from it, or with virt-customize (see README.md).
#
# Optional, from the environment:
#   PGDG_MIRROR   a mirror of https://apt.postgresql.org/pub/repos/apt
set -euo pipefail

major=${1:?usage: bake.sh MAJOR, such as bake.sh 16}
case $major in 1[3-8]) ;; *)
  echo "bake.sh: $major is not a major version from 13 to 18" >&2
  exit 64
  ;;
esac
[ "$(id -u)" = 0 ] || { echo "bake.sh: run it as root" >&2; exit 77; }
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1

apt() { apt-get -y -q -o DPkg::Lock::Timeout=600 -o Dpkg::Options::=--force-confold "$@"; }

# Nothing that is installed starts here, and no database is made: the instance
# makes its own on its data disk. The second line is a default that the file
# would take away.
had_policy=
if [ -e /usr/sbin/policy-rc.d ]; then had_policy=yes; else
  printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
  chmod 0755 /usr/sbin/policy-rc.d
fi
mkdir -p /etc/postgresql-common
printf "create_main_cluster = false\nadd_include_dir = 'conf.d'\n" > /etc/postgresql-common/createcluster.conf

apt update
apt install --no-install-recommends qemu-guest-agent openssh-server sudo ca-certificates postgresql-common
if ! apt-cache show --no-all-versions "postgresql-$major" > /dev/null 2>&1; then
  # The PostgreSQL project's own packages, by the distribution's script for them.
  # Its own refresh of the lists would not know the mirror yet.
  stub=$(mktemp -d)
  printf '#!/bin/sh\n' > "$stub/apt-get"
  chmod 0755 "$stub/apt-get"
  PATH=$stub:$PATH /usr/share/postgresql-common/pgdg/apt.postgresql.org.sh -y <<< ''
  rm -rf "$stub"
  if [ -n "${PGDG_MIRROR:-}" ]; then
    mirror=$(printf %s "$PGDG_MIRROR" | sed 's/[&|]/\\&/g')
    sed -E -i "s|https?://apt(-archive)?\.postgresql\.org/pub/repos/apt/?|$mirror|" /etc/apt/sources.list.d/pgdg.*
  fi
  apt update
fi
apt install --no-install-recommends "postgresql-$major" prometheus-postgres-exporter
# The exporter runs only where an instance asks for it.
systemctl disable prometheus-postgres-exporter.service

# The image is new at each first boot: no identity, no keys, no traces.
apt clean
rm -rf /var/lib/apt/lists/*
[ -n "$had_policy" ] || rm -f /usr/sbin/policy-rc.d
rm -f /etc/ssh/ssh_host_*
if command -v cloud-init > /dev/null; then cloud-init clean --logs --seed; fi
: > /etc/machine-id
rm -f /var/lib/dbus/machine-id
"/usr/lib/postgresql/$major/bin/postgres" --version
