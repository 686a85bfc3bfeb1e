#!/bin/bash
# shellcheck source-path=SCRIPTDIR
# bootstrap.sh converge|watch|grow|scrub: makes this machine the database that
# /etc/dbaas/bootstrap.env describes. Idempotent; dbaas-converge.service runs it
# at every boot. Nothing here prints a secret or passes one in a command line:
# the guest agent logs command lines.
set -uo pipefail
# The end of a pipe runs in this shell, so that "die" there ends the boot.
shopt -s lastpipe
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
umask 022
cd /

parts=/etc/dbaas/parts
# shellcheck source=/dev/null
. /etc/dbaas/bootstrap.env
# shellcheck source=report.sh
. $parts/report.sh
# shellcheck source=packages.sh
. $parts/packages.sh
# shellcheck source=disk.sh
. $parts/disk.sh
# shellcheck source=cluster.sh
. $parts/cluster.sh
# shellcheck source=certificate.sh
. $parts/certificate.sh
# shellcheck source=sizing.sh
. $parts/sizing.sh
# shellcheck source=configuration.sh
. $parts/configuration.sh
# shellcheck source=objects.sh
. $parts/objects.sh
# shellcheck source=exporter.sh
. $parts/exporter.sh
# shellcheck source=logins.sh
. $parts/logins.sh
# shellcheck source=watch.sh
. $parts/watch.sh

run=/run/dbaas
secret=$run/secret
device=/dev/disk/by-id/virtio-pgdata
mount=/var/lib/postgresql
state=$mount/.dbaas
good=$state/good
tls=$mount/tls
unit=postgresql@$DBAAS_MAJOR-main.service
data=$mount/$DBAAS_MAJOR/main
etc=/etc/postgresql/$DBAAS_MAJOR/main
bin=/usr/lib/postgresql/$DBAAS_MAJOR/bin
log=/var/log/postgresql/postgresql-$DBAAS_MAJOR-main.log
socket=/var/run/postgresql
step=start
refused=
unissued=

# durable FILE MODE OWNER, content on stdin: fsync, then rename. What is there
# already is not written again: a database that has filled its disk must be able
# to boot.
durable() {
  local draft new=
  if ! { draft=$(mktemp "$run/.draft.XXXXXX") && cat > "$draft"; }; then die "cannot write to $run"; fi
  if cmp -s "$draft" "$1" && chmod "$2" "$1" && chown "$3" "$1"; then
    rm -f "$draft"
  elif new=$(mktemp "${1%/*}/.new.XXXXXX") && cat "$draft" > "$new" && chmod "$2" "$new" && chown "$3" "$new" &&
    sync "$new" && mv -f "$new" "$1" && sync "${1%/*}"; then
    rm -f "$draft"
  else
    rm -f "$draft" "$new"
    die "cannot write $1"
  fi
}

as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups -- "$@"; }

# sql DATABASE SCHEMA [psql's arguments], statements on stdin. What the owner's
# parameters make of a session does not reach this one: they may say read-only,
# or look for functions where the owner can put some.
sql() {
  PGOPTIONS="-c search_path=$2 -c default_transaction_read_only=off -c statement_timeout=0 -c lock_timeout=0 -c standard_conforming_strings=on" \
    as_postgres psql -XqAt -v ON_ERROR_STOP=1 -h $socket -p "$DBAAS_PORT" -d "$1" "${@:3}"
}

serving() { as_postgres "$bin/pg_isready" -q -h $socket -p "$DBAAS_PORT"; }

converge() {
  rm -f $run/ready $run/converged
  say running "document $DBAAS_HASH"
  install_packages
  data_disk
  cluster
  keys
  configure
  objects
  sync -f $mount
  # From here on the data disk has all that a later boot needs.
  rm -rf $secret
  # The database serves. What fails from here on makes this boot's document not
  # applied, and takes nothing away.
  exporter
  logins
  step=converge
  [ -z "$unissued" ] || die "PostgreSQL serves with its earlier certificate: $unissued"
  [ -z "$refused" ] || die "PostgreSQL refuses the configuration and serves with the last good one: $refused"
  result ok
  say ok "document $DBAAS_HASH, uptime $(cut -d' ' -f1 /proc/uptime)"
}

# cloud-init keeps copies of the document and needs them until its last stage
# is over. The seed is read anew at every boot, so they may go although converge
# has failed.
scrub() {
  step=scrub
  find /var/lib/cloud/instances -type f \( -name 'user-data.txt*' -o -name cloud-config.txt -o -name obj.pkl \) \
    -exec shred -u {} +
  rm -f /run/cloud-init/instance-data-sensitive.json /run/cloud-init/combined-cloud-config.json
  say ok
}

mkdir -p $run
case ${1:-} in
  converge) converge 2>&1 | tee -a /var/log/cloud-init-output.log ;;
  grow) grow_online ;;
  scrub) scrub ;;
  watch) watch ;;
  *)
    echo "usage: bootstrap.sh converge|watch|grow|scrub" >&2
    exit 64
    ;;
esac
