# shellcheck shell=bash disable=SC2034,SC2154 # the variables are bootstrap.sh's
# What the machine says about its progress.

# say STATE [REASON]: one line for the journal, cloud-init's log and the serial
# console, where the provider reads it.
say() {
  local line reason tty=/dev/console
  reason=$(printf %s "${2-}" | tr '"\n\r\t' "'   " | tr -d '\000-\037\177')
  line="dbaas: step=$step state=$1${reason:+ reason=\"$reason\"}"
  echo "$line"
  [ ! -c /dev/ttyS0 ] || tty=/dev/ttyS0
  # A console that nobody drains must not stop the boot.
  { printf '%s\r\n' "$line" | timeout 5 tee "$tty" > /dev/null; } 2> /dev/null || true
}

# result TEXT: the outcome of this boot, for the watch.
result() { printf '%s %s\n' "$DBAAS_HASH" "$*" > "$run/.converged" && mv -f "$run/.converged" "$run/converged"; }

die() {
  say failed "$1"
  result "failed step=$step $1"
  exit 1
}
