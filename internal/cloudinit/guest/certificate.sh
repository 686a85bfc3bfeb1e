# shellcheck shell=bash disable=SC2034,SC2154 # the variables are bootstrap.sh's
# The server's certificate, issued here, so that verify-full works on an address
# that nobody knew before.

lifetime_days=365
renew_days=122

keys() {
  step=certificate
  local key certificate
  if [ -s "$secret/ca.key" ]; then
    key=$(openssl pkey -in "$secret/ca.key" -pubout 2> /dev/null)
    certificate=$(openssl x509 -noout -pubkey <<< "$DBAAS_CA_CERT" 2> /dev/null)
    { [ -n "$key" ] && [ "$key" = "$certificate" ]; } || die "the CA key in the document does not belong to its certificate"
    durable "$state/ca.key" 0600 root:root < "$secret/ca.key"
  fi
  [ -s "$state/ca.key" ] || die "the instance's CA key is neither on the data disk nor in the document"
  printf '%s\n' "$DBAAS_CA_CERT" | durable "$state/ca.crt" 0644 root:root
  if current; then
    say ok
  elif (renewal); then
    say ok
  else
    # A database that serves with the old one is better than none.
    unissued=$(cat "$run/certificate.why")
    verified || die "$unissued"
    touch "$run/certificate-suspect"
  fi
}

# renewal runs in a subshell: what it dies of, such as a full disk, does not end
# a database that can serve with its present certificate.
renewal() {
  die() {
    printf '%s\n' "$1" > "$run/certificate.why"
    say warning "$1"
    exit 1
  }
  issue || die "issuing the server certificate failed: $(tail -n 1 "$run/certificate.log")"
  verified || die "the server certificate does not verify against the instance's CA"
  say issued "$(cat "$state/certificate.names")"
}

# names prints what the certificate must be valid for. An address that is still
# tentative may be given up again.
names() {
  local name
  {
    for name in $DBAAS_HOSTNAME $DBAAS_DNS_NAMES; do echo "DNS:$name"; done
    ip -o addr show scope global up | awk '!/tentative|dadfailed/ { sub(/\/.*/, "", $4); print "IP:" $4 }'
  } | sort -u | paste -sd,
}

verified() { openssl verify -CAfile "$state/ca.crt" "$tls/server.crt" > /dev/null 2>&1; }

# current: the certificate has the right names, a third of its life left, and
# the instance's CA.
current() {
  [ -s "$tls/server.crt" ] && [ "$(cat "$state/certificate.names" 2> /dev/null)" = "$(names)" ] &&
    openssl x509 -in "$tls/server.crt" -noout -checkend $((renew_days * 86400)) > /dev/null && verified
}

issue() {
  local wanted work
  wanted=$(names)
  work=$(mktemp -d "$run/certificate.XXXXXX") || return
  install -d -m 0750 -o root -g postgres "$tls"
  if [ ! -s "$tls/server.key" ]; then
    openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 2> "$run/certificate.log" |
      durable "$tls/server.key" 0640 root:postgres
  fi
  : > "$work/database"
  openssl_settings "$wanted" "$work" > "$work/settings"
  # "openssl x509 -req" cannot set the start: clients' clocks may be behind.
  if openssl req -new -key "$tls/server.key" -config "$work/settings" -out "$work/request" 2> "$run/certificate.log" &&
    openssl ca -batch -notext -config "$work/settings" -cert "$state/ca.crt" -keyfile "$state/ca.key" \
      -in "$work/request" -out "$work/certificate" -startdate "$(date -u -d '-24 hours' +%Y%m%d%H%M%SZ)" \
      -enddate "$(date -u -d "+$lifetime_days days" +%Y%m%d%H%M%SZ)" 2>> "$run/certificate.log"; then
    durable "$tls/server.crt" 0644 root:root < "$work/certificate"
    printf '%s\n' "$wanted" | durable "$state/certificate.names" 0600 root:root
    rm -rf "$work"
    return 0
  fi
  rm -rf "$work"
  return 1
}

# openssl_settings NAMES FOLDER. rand_serial must stand here: its option is
# ignored where there is no serial file. A common name holds 64 characters.
openssl_settings() {
  cat << END
[req]
distinguished_name = subject
prompt = no
[subject]
CN = ${DBAAS_HOSTNAME:0:64}
[ca]
default_ca = authority
[authority]
database = $2/database
new_certs_dir = $2
default_md = sha256
policy = policy
unique_subject = no
rand_serial = yes
copy_extensions = none
x509_extensions = extensions
[policy]
commonName = supplied
[extensions]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth
authorityKeyIdentifier = keyid
subjectAltName = $1
END
}
