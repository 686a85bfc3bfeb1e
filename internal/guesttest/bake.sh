#!/usr/bin/env bash
# bake.sh OUT: a cache folder for the lab, OUT, in which the image "baked" is the
# plain one after examples/baked-image/bake.sh has run in it. Run from the top of
# the repository, as root; bin/lab must be built. It prints nothing on success
# but what the recipe prints.
set -euo pipefail

out=$(realpath -m "${1:?folder to make}")
real=${XDG_CACHE_HOME:-$HOME/.cache}/terraform-provider-dbaas/lab
root=$(bin/lab image -variant plain | sed -n 's/^layer *//p' | tail -n 1)
key=$(basename "$(dirname "$root")")
lab=$out/terraform-provider-dbaas/lab
place=$lab/image/$key
stamp=$(sha256sum examples/baked-image/bake.sh)
if [ "$(cat "$place/baked.recipe" 2> /dev/null)" = "$stamp" ]; then exit 0; fi

rm -rf "$lab"
mkdir -p "$place"
ln -s "$root" "$place/root"
for entry in "$real"/*; do
  [ "$(basename "$entry")" = image ] || ln -s "$entry" "$lab/"
done

# bake runs in a mount namespace of its own, so that no mount outlives it.
bake() {
  local upper=$1 work=$1.work at=$1.root sources
  mkdir -p "$upper" "$work" "$at"
  mount -t overlay overlay -o "lowerdir=$2,upperdir=$upper,workdir=$work" "$at"
  mount -t proc proc "$at/proc"
  mount --rbind /dev "$at/dev"
  mount -t tmpfs tmpfs "$at/run"
  mkdir -p "$at/run/systemd/resolve"
  cat /etc/resolv.conf > "$at/run/systemd/resolve/stub-resolv.conf"
  # While baking the packages come from where this host takes its own.
  sources=$at/run/apt
  mkdir -p "$sources/etc"
  cp -r /etc/apt/sources.list* /etc/apt/apt.conf.d "$sources/etc/"
  [ -d "$sources/etc/sources.list.d" ] || mkdir "$sources/etc/sources.list.d"
  {
    echo 'Dir::Etc::SourceList "/run/apt/etc/sources.list";'
    echo 'Dir::Etc::SourceParts "/run/apt/etc/sources.list.d";'
    apt-config dump Acquire::http | grep '::Proxy ' || true
    apt-config dump Acquire::https | grep '::Proxy ' || true
  } > "$sources/apt.conf"
  install -m 0755 examples/baked-image/bake.sh "$at/run/bake.sh"
  APT_CONFIG=/run/apt/apt.conf chroot "$at" bash /run/bake.sh 15
  umount -R "$at"
  rm -rf "$work" "$at"
}
export -f bake
unshare --mount bash -ec 'bake "$@"' bake "$place/baked" "$root"
echo "$stamp" > "$place/baked.recipe"
