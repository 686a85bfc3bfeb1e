# shellcheck shell=bash disable=SC2034,SC2154 # the variables are bootstrap.sh's
# PostgreSQL's configuration. Debian keeps it on the root disk, so all of it is
# rebuilt at every boot: a new root disk adopts the old data.

# configure starts PostgreSQL with the wanted configuration, else with the last
# good one, and then leaves PostgreSQL's own words in $refused.
configure() {
  step=configure
  local before wanted=$etc/conf.d/dbaas.conf rules=$etc/pg_hba.conf
  before=$(fingerprint)
  frame
  settings | durable "$wanted" 0644 postgres:postgres
  host_rules | durable "$rules" 0640 postgres:postgres
  allow_port
  if serving && [ "$before" = "$(fingerprint)" ]; then
    say ok "unchanged and running"
    return
  fi
  if try_start; then
    remember
    say ok "memory $(memory_mib) MiB, max_connections $DBAAS_MAX_CONNECTIONS"
    return
  fi
  refused=$why
  # Not "failed": that is the last word of a boot.
  say refused "$refused"
  fall_back
  say restored "serving with the last good configuration"
}

# remember keeps what PostgreSQL has come up with.
remember() {
  install -d -m 0700 -o root -g root "$good"
  durable "$good/dbaas.conf" 0600 root:root < "$wanted"
  durable "$good/pg_hba.conf" 0600 root:root < "$rules"
  owners_settings | durable "$good/owner.conf" 0600 root:root
}

# fall_back starts PostgreSQL with what it came up with before.
fall_back() {
  { [ -s "$good/dbaas.conf" ] && [ -s "$good/pg_hba.conf" ]; } ||
    die "PostgreSQL refuses the configuration and there is no earlier one: $refused"
  durable "$wanted" 0644 postgres:postgres < "$good/dbaas.conf"
  durable "$rules" 0640 postgres:postgres < "$good/pg_hba.conf"
  ! try_start || return 0
  # Its sizes may be those of a machine that was larger.
  say refused "the last good configuration: $why"
  owners_settings() { cat "$good/owner.conf"; }
  settings | durable "$wanted" 0644 postgres:postgres
  try_start || die "PostgreSQL does not start with the last good configuration either: $why; and it had refused the new one: $refused"
}

fingerprint() {
  cat "$etc/postgresql.conf" "$etc/pg_hba.conf" "$etc/pg_ident.conf" "$etc/conf.d/dbaas.conf" 2> /dev/null | sha256sum
}

frame() {
  install -d -o postgres -g postgres -m 0755 "/etc/postgresql/$DBAAS_MAJOR" "$etc" "$etc/conf.d"
  install -d -o root -g postgres -m 1775 /var/log/postgresql
  # Converge starts PostgreSQL. The boot by itself would race the mount.
  echo manual | durable "$etc/start.conf" 0644 postgres:postgres
  echo "pg_ctl_options = ''" | durable "$etc/pg_ctl.conf" 0644 postgres:postgres
  # Debian's exporter runs as the system's user prometheus.
  echo 'exporter prometheus postgres_exporter' | durable "$etc/pg_ident.conf" 0640 postgres:postgres
  durable "$etc/postgresql.conf" 0644 postgres:postgres << END
data_directory = '$data'
hba_file = '$etc/pg_hba.conf'
ident_file = '$etc/pg_ident.conf'
external_pid_file = '$socket/$DBAAS_MAJOR-main.pid'
unix_socket_directories = '$socket'
include_dir = 'conf.d'
END
}

# settings: the last line wins, so the owner's parameters stand after what they
# may change and before what they may not.
settings() {
  local memory
  memory=$(memory_mib)
  echo "# Written at every boot from /etc/dbaas/bootstrap.env. Memory: $memory MiB"
  sizing "$memory" "$(nproc)" "$DBAAS_MAX_CONNECTIONS" "$DBAAS_DATA_GIB"
  owners_settings
  cat << END
# The machine's
listen_addresses = '*'
port = $DBAAS_PORT
max_connections = $DBAAS_MAX_CONNECTIONS
password_encryption = 'scram-sha-256'
ssl = on
ssl_cert_file = '$tls/server.crt'
ssl_key_file = '$tls/server.key'
END
}

owners_settings() { printf '# The owner'\''s parameters\n%s' "$DBAAS_PARAMETERS"; }

# host_rules: over the network only with TLS and SCRAM.
host_rules() {
  local range
  [ -z "$DBAAS_MONITORING" ] || echo "local postgres postgres_exporter peer map=exporter"
  echo "local all all peer"
  for range in $DBAAS_CIDRS; do echo "hostssl all all $range scram-sha-256"; done
}

# allow_port lets postgres, which is not root, listen on a low port.
allow_port() {
  [ "$DBAAS_PORT" -ge 1024 ] || sysctl -q -w "net.ipv4.ip_unprivileged_port_start=$DBAAS_PORT" ||
    say warning "the kernel does not let PostgreSQL listen on port $DBAAS_PORT"
}

# words reads PostgreSQL's messages and prints the first that says why.
words() {
  grep -E '(FATAL|PANIC|ERROR|LOG): ' |
    grep -vE 'LOG: +(starting|listening|database system|redirecting|shutting|checkpoint|received|invalid length|redo|ending log)' |
    head -n 1 | sed -E 's/^.*(FATAL|PANIC|ERROR|LOG): +//'
}

# try_start starts PostgreSQL and waits until it serves; if it does not, $why
# holds PostgreSQL's own words.
try_start() {
  local from attempt=0
  # Names and values. Libraries, memory and ciphers show only at the start.
  why=$(as_postgres "$bin/postgres" -C data_directory -c "config_file=$etc/postgresql.conf" 2>&1 > /dev/null | words)
  [ -z "$why" ] || return 1
  systemctl stop "$unit"
  from=$(stat -c %s "$log" 2> /dev/null || echo 0)
  systemctl reset-failed "$unit" 2> /dev/null
  # pg_ctlcluster sleeps two seconds after PostgreSQL serves: do not wait for it.
  systemctl --no-block start "$unit"
  until serving; do
    if ended; then
      why=$(tail -c "+$((from + 1))" "$log" | words)
      why=${why:-it ended without a word}
      systemctl stop "$unit"
      return 1
    fi
    attempt=$((attempt + 1))
    [ $((attempt % 150)) -ne 0 ] || say waiting "PostgreSQL is recovering"
    sleep 0.2
  done
}

# ended: the unit's job is over and no PostgreSQL runs. Debian's unit ignores
# that the start has failed, so its state alone says nothing.
ended() {
  local job pid
  job=$(systemctl show -P Job "$unit")
  [ "${job:-0}" = 0 ] || return 1
  # After a power cut the file may name a process of this boot that is another.
  pid=$(head -n 1 "$data/postmaster.pid" 2> /dev/null) || return 0
  case $(readlink "/proc/$pid/exe") in "$bin/postgres"*) return 1 ;; esac
}
