# shellcheck shell=bash disable=SC2034,SC2154 # the variables are bootstrap.sh's
# Installing what the image lacks. A machine that lacks nothing never needs a
# package source.

install_packages() {
  step=install
  package_settings
  if installed && [ -x /usr/sbin/qemu-ga ]; then
    say ok "PostgreSQL $DBAAS_MAJOR is in the image"
    return
  fi
  say running "PostgreSQL $DBAAS_MAJOR"
  install_agent
  installed || install_postgresql
  installed || die "postgresql-$DBAAS_MAJOR is installed but $bin/postgres is missing"
  say ok
}

installed() { [ -x "$bin/postgres" ] && [ -x /usr/bin/pg_ctlcluster ]; }

package_settings() {
  mkdir -p /etc/postgresql-common /etc/apt/apt.conf.d /etc/needrestart/conf.d
  # The cluster is made by converge, on the data disk.
  printf "create_main_cluster = false\nadd_include_dir = 'conf.d'\n" > /etc/postgresql-common/createcluster.conf
  # PostgreSQL restarts when its owner restarts the machine, not at night: neither
  # for a version of its own nor, on Ubuntu, for one of a library.
  printf 'Unattended-Upgrade::Package-Blacklist { "postgresql"; };\n' > /etc/apt/apt.conf.d/60dbaas-postgresql
  # shellcheck disable=SC2016 # Perl
  echo '$nrconf{override_rc}{qr(^postgresql)} = 0;' > /etc/needrestart/conf.d/dbaas.conf
  if [ -n "$DBAAS_APT_PROXY" ]; then
    # What the image would find out by itself is worth less than what was said.
    printf '#clear Acquire::http::Proxy-Auto-Detect;\nAcquire::http::Proxy "%s";\nAcquire::https::Proxy "%s";\n' \
      "$DBAAS_APT_PROXY" "$DBAAS_APT_PROXY" > /etc/apt/apt.conf.d/99dbaas-proxy
  else
    rm -f /etc/apt/apt.conf.d/99dbaas-proxy
  fi
}

apt() {
  DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 apt-get -y -q -o DPkg::Lock::Timeout=600 \
    -o Dpkg::Options::=--force-confold -o Acquire::Retries=2 -o APT::Update::Error-Mode=any "$@" > "$run/apt" 2>&1
}

# fetch PACKAGE installs it, or ends the boot saying why not.
fetch() {
  sources
  apt install --no-install-recommends "$1" || lacking "installing $1 failed: $(complaint)"
}

# sources makes apt ready, once a boot.
sources() {
  [ -z "${unread+read}" ] || return 0
  # cloud-init chooses the mirror and writes the package sources in this stage.
  systemctl start cloud-config.service || true
  # A power cut may have left packages half configured.
  dpkg --configure -a || true
  refresh
}

# refresh reads the package lists: three times, since a mirror may be in the
# middle of an update, and for five minutes while somebody else reads them. One
# source that fails matters only if what is needed is not in the others.
refresh() {
  local attempt=1 waited=0
  unread=
  until apt update; do
    cat "$run/apt"
    if grep -q 'Could not get lock' "$run/apt" && [ "$waited" -lt 60 ]; then
      waited=$((waited + 1))
    elif [ "$attempt" -lt 3 ]; then
      attempt=$((attempt + 1))
    else
      unread=$(complaint)
      say warning "reading the package lists failed: $unread"
      return
    fi
    sleep 5
  done
}

# lacking TEXT ends the boot, with what was wrong with the sources.
lacking() { die "$1${unread:+; reading the package lists failed: $unread}"; }

complaint() { grep -m 1 '^E: ' "$run/apt" || tail -n 1 "$run/apt"; }

# The agent comes first: without it the machine's address stays unknown.
install_agent() {
  [ ! -x /usr/sbin/qemu-ga ] || return 0
  fetch qemu-guest-agent
  # Its unit is started by udev when the virtio port appears, which it did before.
  udevadm trigger --subsystem-match=virtio-ports || true
  systemctl --no-block start qemu-guest-agent.service || true
}

install_postgresql() {
  local package=postgresql-$DBAAS_MAJOR
  sources
  available "$package" || add_pgdg
  available "$package" || lacking "PostgreSQL $DBAAS_MAJOR is not to be had from the package sources of this machine"
  fetch "$package"
}

available() { apt-cache show --no-all-versions "$1" > /dev/null 2>&1; }

# add_pgdg adds the PostgreSQL project's own packages by the script that the
# distribution's postgresql-common has for it, which also brings the key. Its
# releases write two forms of source lists. The script's own "apt-get update"
# would go to the Internet before a mirror is named, so it finds another one.
add_pgdg() {
  local stub=$run/no-update mirror
  say running "PostgreSQL $DBAAS_MAJOR is not in the distribution; asking PGDG"
  fetch postgresql-common
  fetch ca-certificates
  mkdir -p "$stub"
  printf '#!/bin/sh\n' > "$stub/apt-get"
  chmod 0755 "$stub/apt-get"
  PATH=$stub:$PATH /usr/share/postgresql-common/pgdg/apt.postgresql.org.sh -y <<< '' > "$run/apt" 2>&1 ||
    say warning "adding PGDG failed: $(complaint)"
  rm -rf "$stub"
  if [ -n "$DBAAS_PGDG_MIRROR" ]; then
    # shellcheck disable=SC2001 # what ${//} makes of "&" differs between versions of bash
    mirror=$(sed 's/[&|]/\\&/g' <<< "$DBAAS_PGDG_MIRROR")
    sed -E -i "s|https?://apt(-archive)?\.postgresql\.org/pub/repos/apt/?|$mirror|" /etc/apt/sources.list.d/pgdg.* ||
      die "PGDG's package source cannot be pointed to its mirror"
  fi
  refresh
}
