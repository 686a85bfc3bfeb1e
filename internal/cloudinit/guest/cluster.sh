# shellcheck shell=bash disable=SC2034,SC2154 # the variables are bootstrap.sh's
# The database cluster: made once, never again.

cluster() {
  step=cluster
  install -d -o postgres -g postgres -m 0755 "$mount/$DBAAS_MAJOR"
  rm -rf "$data.new"
  [ -s "$data/PG_VERSION" ] || create_cluster
  [ "$(cat "$data/PG_VERSION")" = "$DBAAS_MAJOR" ] ||
    die "the data is of PostgreSQL $(cat "$data/PG_VERSION"), not $DBAAS_MAJOR"
  [ -e "$state/created" ] || echo "$DBAAS_MAJOR" | durable "$state/created" 0600 root:root
  say ok
}

create_cluster() {
  local others
  [ -s "$secret/ca.key" ] || die "no database cluster on the data disk, but this database has been bootstrapped before; nothing created"
  [ ! -e "$state/created" ] || die "the database cluster has been created before, and is gone; nothing created"
  others=$(find "$mount" -mindepth 3 -maxdepth 3 -path '*/main/PG_VERSION' | head -n 1)
  [ -z "$others" ] || die "the data disk holds $others, a database cluster of another version; nothing created"
  say creating
  # initdb writes PG_VERSION first of all: only the rename says that it is complete.
  as_postgres "$bin/initdb" -D "$data.new" --locale=C.UTF-8 --encoding=UTF8 --data-checksums \
    --auth-local=peer --auth-host=scram-sha-256 > "$run/initdb" 2>&1 || die "initdb: $(tail -n 1 "$run/initdb")"
  [ ! -d "$data" ] || rmdir "$data" || die "$data is not empty and has no PG_VERSION"
  sync -f "$mount"
  mv -T "$data.new" "$data"
  sync "$mount/$DBAAS_MAJOR"
}
