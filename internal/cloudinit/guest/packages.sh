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
  export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1
  # cloud-init chooses the mirror and writes the package sources in this stage.
  systemctl start cloud-config.service || true
  # A power cut may have left packages half configured.
  dpkg --configure -a || true
  refresh
  install_agent
  installed || install_postgresql
  installed || die "postgresql-$DBAAS_MAJOR is installed but $bin/postgres is missing"
  say ok
}

installed() { [ -x "$bin/postgres" ] && [ -x /usr/bin/pg_ctlcluster ]; }

package_settings() {
  mkdir -p /etc/postgresql-common /etc/apt/apt.conf.d
  # The cluster is made by converge, on the data disk.
  printf "create_main_cluster = false\nadd_include_dir = 'conf.d'\n" > /etc/postgresql-common/createcluster.conf
  # PostgreSQL restarts when its owner restarts the machine, not at night.
  printf 'Unattended-Upgrade::Package-Blacklist { "postgresql"; };\n' > /etc/apt/apt.conf.d/60dbaas-postgresql
  if [ -n "$DBAAS_APT_PROXY" ]; then
    printf 'Acquire::http::Proxy "%s";\nAcquire::https::Proxy "%s";\n' "$DBAAS_APT_PROXY" "$DBAAS_APT_PROXY" \
      > /etc/apt/apt.conf.d/90dbaas-proxy
  else
    rm -f /etc/apt/apt.conf.d/90dbaas-proxy
  fi
}

apt() {
  apt-get -y -q -o DPkg::Lock::Timeout=600 -o Dpkg::Options::=--force-confold -o Acquire::Retries=2 \
    -o APT::Update::Error-Mode=any "$@"
}

# refresh reads the package lists: three times, since a mirror may be in the
# middle of an update and the lists' lock may be taken. One source that fails
# matters only if what is needed is not in the others.
refresh() {
  local attempt
  unread=
  for attempt in 1 2 3; do
    apt update > "$run/apt" 2>&1 && return
    cat "$run/apt"
    [ "$attempt" -eq 3 ] || sleep 5
  done
  unread=$(complaint)
  say warning "reading the package lists failed: $unread"
}

# lacking TEXT ends the boot, with what was wrong with the sources.
lacking() { die "$1${unread:+; reading the package lists failed: $unread}"; }

complaint() { grep -m 1 '^E: ' "$run/apt" || tail -n 1 "$run/apt"; }

# The agent comes first: without it the machine's address stays unknown.
install_agent() {
  [ ! -x /usr/sbin/qemu-ga ] || return 0
  apt install --no-install-recommends qemu-guest-agent > "$run/apt" 2>&1 || lacking "installing qemu-guest-agent failed: $(complaint)"
  # Its unit is started by udev when the virtio port appears, which it did before.
  udevadm trigger --subsystem-match=virtio-ports || true
  systemctl --no-block start qemu-guest-agent.service || true
}

install_postgresql() {
  local package=postgresql-$DBAAS_MAJOR
  available "$package" || add_pgdg
  available "$package" || lacking "PostgreSQL $DBAAS_MAJOR is not to be had from the package sources of this machine"
  apt install --no-install-recommends "$package" > "$run/apt" 2>&1 || lacking "installing $package failed: $(complaint)"
}

available() { apt-cache show --no-all-versions "$1" > /dev/null 2>&1; }

# add_pgdg adds the PostgreSQL project's own packages, whose key and address
# the distribution's postgresql-common knows.
add_pgdg() {
  local folder=/usr/share/postgresql-common/pgdg key codename
  say running "PostgreSQL $DBAAS_MAJOR is not in the distribution; asking PGDG"
  apt install --no-install-recommends postgresql-common ca-certificates > "$run/apt" 2>&1 ||
    lacking "installing postgresql-common failed: $(complaint)"
  if [ -z "$DBAAS_PGDG_MIRROR" ]; then
    "$folder/apt.postgresql.org.sh" -y > "$run/apt" 2>&1 || say warning "adding PGDG failed: $(complaint)"
  else
    for key in $folder/apt.postgresql.org.asc $folder/apt.postgresql.org.gpg; do [ ! -s "$key" ] || break; done
    [ -s "$key" ] || die "the distribution's postgresql-common has no key of PGDG"
    codename=$(. /etc/os-release && printf %s "$VERSION_CODENAME")
    printf 'deb [signed-by=%s] %s %s-pgdg main\n' "$key" "$DBAAS_PGDG_MIRROR" "$codename" > /etc/apt/sources.list.d/dbaas-pgdg.list
  fi
  refresh
}
