# shellcheck shell=bash disable=SC2034,SC2154 # the variables are bootstrap.sh's
# The metrics exporter: Debian's and Ubuntu's package, as a role that may read
# statistics and has no password.

exporter_unit=prometheus-postgres-exporter.service
exporter_port=9187

exporter() {
  step=exporter
  local folder=/etc/systemd/system/$exporter_unit.d before
  if [ -z "$DBAAS_MONITORING" ]; then
    [ ! -d "$folder" ] || { systemctl stop "$exporter_unit"; rm -rf "$folder"; systemctl daemon-reload; }
    return
  fi
  exporter_role | sql postgres pg_catalog > "$run/sql" 2>&1 || die "SQL: $(grep -m 1 -E 'ERROR|FATAL|error' "$run/sql")"
  before=$(cat "$folder/dbaas.conf" 2> /dev/null)
  mkdir -p "$folder"
  exporter_environment | durable /etc/dbaas/exporter.env 0644 root:root
  exporter_settings | durable "$folder/dbaas.conf" 0644 root:root
  systemctl daemon-reload
  [ -x /usr/bin/prometheus-postgres-exporter ] || fetch prometheus-postgres-exporter
  # Converge starts it, after PostgreSQL.
  systemctl disable -q "$exporter_unit"
  if [ "$before" = "$(cat "$folder/dbaas.conf")" ]; then
    systemctl start "$exporter_unit" || die "the exporter does not start"
  else
    systemctl restart "$exporter_unit" || die "the exporter does not start"
  fi
  exporter_guarded || say warning "allowed_cidrs of monitoring does nothing: the kernel does not let systemd filter (no BPF, as in a container); every network that reaches port $exporter_port may read the metrics"
  say ok "port $exporter_port"
}

# exporter_guarded: what filters also counts, and without it there is no count.
# Where every network may read, nothing need be filtered.
exporter_guarded() {
  case " $DBAAS_MONITORING_CIDRS " in *' 0.0.0.0/0 '*) case " $DBAAS_MONITORING_CIDRS " in *' ::/0 '*) return 0 ;; esac ;; esac
  case $(systemctl show -p IPIngressBytes --value "$exporter_unit") in '' | *[!0-9]* | 18446744073709551615) return 1 ;; esac
}

exporter_role() {
  cat << 'SQL'
SELECT 'CREATE ROLE postgres_exporter LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'postgres_exporter') \gexec
GRANT pg_monitor TO postgres_exporter;
SQL
}

exporter_environment() {
  echo "DATA_SOURCE_NAME='user=postgres_exporter host=$socket port=$DBAAS_PORT dbname=postgres sslmode=disable'"
  echo "ARGS='--web.listen-address=:$exporter_port'"
}

# exporter_settings: a file of ours, since the package's own, which is read
# first, would outrank variables. The kernel drops what comes from other networks.
exporter_settings() {
  local range
  cat << END
[Service]
EnvironmentFile=/etc/dbaas/exporter.env
Restart=always
IPAccounting=yes
IPAddressDeny=any
IPAddressAllow=localhost
END
  for range in $DBAAS_MONITORING_CIDRS; do echo "IPAddressAllow=$range"; done
}
