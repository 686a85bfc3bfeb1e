# shellcheck shell=sh
# The head of the document's one bootcmd. cloud-init runs it with sh at every
# boot; the files follow as here-documents, so that nothing of them is ever in
# a command line, and "start" is the end.
umask 022
# For tests.
root=${DBAAS_ROOT-}
pending=
folders=

# put PATH MODE, content on stdin: prepares a file.
put() {
  folder=$root${1%/*}
  [ -d "$folder" ] || mkdir -p "$folder" || give_up "cannot make ${1%/*}"
  { cat > "$root$1.new" && chmod "$2" "$root$1.new"; } || give_up "cannot write $1"
  pending="$pending $root$1"
  folders="$folders $folder"
}

# publish gives all prepared files their names: each is whole, the old one or
# the new one, also after a power cut.
publish() {
  for path in $pending; do set -- "$@" "$path.new"; done
  sync "$@" || give_up "cannot write the scripts to the disk"
  for path in $pending; do mv -f "$path.new" "$path" || give_up "cannot write $path"; done
  # shellcheck disable=SC2086 # a list
  sync $folders || give_up "cannot write the scripts to the disk"
}

give_up() {
  tty=/dev/console
  [ ! -c /dev/ttyS0 ] || tty=/dev/ttyS0
  printf 'dbaas: step=document state=failed reason="%s"\r\n' "$1" > "$tty"
  exit 1
}

start() {
  publish
  systemctl daemon-reload
  udevadm control --reload || true
  systemctl --no-block start dbaas-watch.service dbaas-scrub.service
  systemctl --no-block restart dbaas-converge.service || give_up "cannot start dbaas-converge.service"
}

mkdir -p "$root/run/dbaas/secret"
chmod 0700 "$root/run/dbaas/secret"
rm -f "$root/run/dbaas/converged" "$root/run/dbaas/ready"
