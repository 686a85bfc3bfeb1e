# shellcheck shell=bash disable=SC2034,SC2154 # the variables are bootstrap.sh's
# What is made inside PostgreSQL.

objects() {
  step=objects
  local extension applied
  # A verifier is applied once: a password that the owner sets by SQL later is
  # not undone by the next boot.
  applied=$(sha256sum < "$secret/verifier" 2> /dev/null)
  {
    if [ -s "$secret/verifier" ] && [ "$applied" != "$(cat "$state/verifier.applied" 2> /dev/null)" ]; then
      printf "\\\\set verifier '%s'\n" "$(cat "$secret/verifier")"
    fi
    statements
  } | sql postgres pg_catalog -v role="$DBAAS_ROLE" -v db="$DBAAS_DATABASE" > "$run/sql" 2>&1 ||
    die "SQL: $(grep -m 1 -E 'ERROR|FATAL|error' "$run/sql")"
  [ ! -s "$secret/verifier" ] || printf '%s\n' "$applied" | durable "$state/verifier.applied" 0600 root:root
  for extension in $DBAAS_EXTENSIONS; do
    sql "$DBAAS_DATABASE" public -v extension="$extension" <<< 'CREATE EXTENSION IF NOT EXISTS :"extension";' > "$run/sql" 2>&1 ||
      die "extension $extension: $(grep -m 1 -E 'ERROR|FATAL' "$run/sql")"
  done
  say ok
}

# statements: what could write them down is off while the verifier passes. The
# role is never made without one, since nobody could log in then.
statements() {
  cat << 'SQL'
SET log_statement = 'none';
SET log_min_duration_statement = -1;
SET log_min_duration_sample = -1;
SET log_transaction_sample_rate = 0;
SET log_min_error_statement = 'panic';
SET log_min_messages = 'error';
SET debug_print_parse = off;
SET debug_print_rewritten = off;
SET debug_print_plan = off;
SET auto_explain.log_min_duration = -1;
SET track_activities = off;
SET pg_stat_statements.track = 'none';
SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = :'role') AS known \gset
\if :{?verifier}
  \if :known
  \else
    SELECT format('CREATE ROLE %I LOGIN CREATEDB CREATEROLE', :'role') \gexec
  \endif
  SELECT format('ALTER ROLE %I PASSWORD %L', :'role', :'verifier') \gexec
\elif :known
\else
  DO $$ BEGIN RAISE 'the master role is gone, and this document has no password for a new one'; END $$;
\endif
SELECT format('CREATE DATABASE %I OWNER %I', :'db', :'role')
  WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'db') \gexec
SQL
}
