# shellcheck shell=bash disable=SC2034,SC2154 # the variables are bootstrap.sh's
# A loop that keeps the readiness result and the certificate current. A service,
# since a timer would fill the journal.

watch() {
  local up turn=0
  while :; do
    renew $((turn % 720))
    read -r up _ < /proc/uptime
    # Stamped with the uptime: the wall clock may be set.
    printf '%s %s\n' "${up%.*}" "$(verdict)" > "$run/.ready" && mv -f "$run/.ready" "$run/ready"
    if [ -e "$run/converged" ]; then
      turn=$((turn + 1))
      sleep 5
    else
      sleep 1
    fi
  done
}

# renew TURN issues a new certificate when the machine's addresses have changed,
# and looks at the old one's age once an hour; once a minute while something was
# wrong with it: issuing failed, or the clock was set back to before its start.
renew() {
  { [ -e "$run/converged" ] && [ -s "$state/ca.key" ]; } || return 0
  if [ -e "$run/certificate-suspect" ]; then
    [ $(($1 % 12)) -eq 0 ] || return 0
  else
    [ "$1" -eq 0 ] || [ "$(names)" != "$(cat "$state/certificate.names" 2> /dev/null)" ] || return 0
  fi
  rm -f "$run/certificate-suspect"
  ! current || return 0
  step=certificate
  if (renewal); then systemctl reload "$unit"; else touch "$run/certificate-suspect"; fi
}

# verdict prints "ready HASH", or why not. It logs in nowhere: the role and the
# database were checked by converge, and a login per probe fills PostgreSQL's log.
verdict() {
  local hash outcome
  read -r hash outcome 2> /dev/null < "$run/converged" || { echo "not converging"; return; }
  [ "$hash" = "$DBAAS_HASH" ] || { echo "not converged for $DBAAS_HASH"; return; }
  [ "$outcome" = ok ] || { echo "not $outcome"; return; }
  serving || { echo "not serving"; return; }
  timeout 4 openssl s_client -starttls postgres -connect "127.0.0.1:$DBAAS_PORT" -verify_return_error \
    -CAfile "$state/ca.crt" -verify_hostname "$DBAAS_HOSTNAME" < /dev/null > /dev/null 2>&1 ||
    { touch "$run/certificate-suspect"; echo "not serving TLS with a valid certificate on port $DBAAS_PORT"; return; }
  grown || { echo "not grown to $DBAAS_DATA_GIB GiB"; return; }
  echo "ready $hash"
}
