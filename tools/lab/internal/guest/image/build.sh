#!/bin/bash
# build.sh root OUT | layer OUT LOWER PACKAGE... | disk OUT LOWER
#
# One step of building the guest image, run by package image as root in a mount
# namespace of its own, so that no mount outlives it. LOWER is an overlay's list
# of folders, topmost first. The environment:
#   SOURCES   the Debian sources (deb822) that this host can reach
#   GUEST     the sources that the image keeps: plain http, as the lab's proxy wants
#   PROXY     the host's own proxy for apt, or empty
set -euo pipefail
umask 022

apt_options=(-o APT::Install-Recommends=false -o DPkg::Options::=--force-unsafe-io)
if [ -n "${PROXY:-}" ]; then apt_options+=(-o "Acquire::http::Proxy=$PROXY"); fi

# What Debian's cloud image has that matters here, and as there: no PostgreSQL
# and no guest agent.
root_packages=systemd-sysv,systemd-resolved,systemd-timesyncd,udev,dbus,kmod,iproute2,netbase,netplan.io
root_packages+=,ca-certificates,e2fsprogs,fdisk,gdisk,cloud-init,cloud-guest-utils,eject,openssl,curl,gnupg
root_packages+=,python3-jsonschema,python3-netifaces,python3-yaml,procps,less,util-linux-extra,debian-archive-keyring

# shellcheck disable=SC2153 # SOURCES comes from the environment
root() {
  local out=$1 sources
  sources=$(mktemp)
  printf '%s\n' "$SOURCES" > "$sources"
  local options=()
  if [ -n "${PROXY:-}" ]; then options+=(--aptopt="Acquire::http::Proxy \"$PROXY\""); fi
  mmdebstrap --mode=root --variant=minbase --format=directory "${options[@]}" \
    --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt=force-unsafe-io \
    --include="$root_packages" bookworm "$out" "$sources"
  rm -f "$sources"
  settle "$out"
}

# settle turns a bootstrapped folder into a machine that is new at its first boot.
settle() {
  local out=$1
  rm -f "$out/etc/hostname" "$out/etc/apt/sources.list" "$out"/etc/apt/sources.list.d/*
  : > "$out/etc/machine-id"
  : > "$out/etc/fstab" # the root is named on the kernel's command line
  printf '%s\n' "$GUEST" > "$out/etc/apt/sources.list.d/debian.sources"
  printf 'datasource_list: [ NoCloud, ConfigDrive, None ]\n' > "$out/etc/cloud/cloud.cfg.d/90_dpkg.cfg"
  printf 'ssh_genkeytypes: []\n' > "$out/etc/cloud/cloud.cfg.d/95_no_sshd.cfg"
  chroot "$out" systemctl enable systemd-networkd systemd-resolved
  chroot "$out" systemctl mask e2scrub_reap.service apt-daily.timer apt-daily-upgrade.timer
  ln -sf ../run/systemd/resolve/stub-resolv.conf "$out/etc/resolv.conf"
  install -D -m 0755 /dev/stdin "$out/usr/lib/lab/apt-proxy" <<'SCRIPT'
#!/bin/sh
# apt asks this for its proxy; the lab names it where a boot loader could.
for word in $(cat /run/lab/cmdline /proc/cmdline 2>/dev/null); do
  case $word in lab.proxy=*) echo "${word#lab.proxy=}"; exit ;; esac
done
echo DIRECT
SCRIPT
  printf 'Acquire::http::Proxy-Auto-Detect "/usr/lib/lab/apt-proxy";\n' > "$out/etc/apt/apt.conf.d/90lab"
}

# overlay mounts LOWER, writable into UPPER, and makes it a place to run apt in.
overlay() {
  local upper=$1 lower=$2 at=$3
  mkdir -p "$upper" "$upper.work" "$at"
  mount -t overlay overlay -o "lowerdir=$lower,upperdir=$upper,workdir=$upper.work" "$at"
  mount -t proc proc "$at/proc"
  mount --rbind /dev "$at/dev"
  mount -t tmpfs tmpfs "$at/run"
  mkdir -p "$at/run/systemd/resolve"
  cat /etc/resolv.conf > "$at/run/systemd/resolve/stub-resolv.conf"
}

bare() { # UPPER AT: undo overlay, except for what was installed
  umount -R "$2"
  rm -rf "$1.work" "$2"
  find "$1/var/cache/apt" "$1/var/lib/apt/lists" -type f -delete 2>/dev/null || true
}

layer() {
  local out=$1 lower=$2
  shift 2
  overlay "$out" "$lower" "$out.root"
  local at=$out.root
  printf '#!/bin/sh\nexit 101\n' > "$at/usr/sbin/policy-rc.d" # nothing starts while building
  chmod 0755 "$at/usr/sbin/policy-rc.d"
  if printf '%s ' "$@" | grep -q postgresql; then
    # The file replaces built-in defaults; add_include_dir is one of them.
    mkdir -p "$at/etc/postgresql-common"
    printf "create_main_cluster = false\nadd_include_dir = 'conf.d'\n" > "$at/etc/postgresql-common/createcluster.conf"
  fi
  if printf '%s ' "$@" | grep -q linux-image; then
    mkdir -p "$at/etc/initramfs-tools/conf.d"
    # Only what finds the root disk: every module more is seconds under emulation.
    printf 'MODULES=list\nCOMPRESS=lz4\n' > "$at/etc/initramfs-tools/conf.d/lab"
    printf 'virtio_pci\nvirtio_blk\next4\n' > "$at/etc/initramfs-tools/modules"
  fi
  printf '%s\n' "$SOURCES" > "$at/etc/apt/sources.list.d/debian.sources"
  chroot "$at" apt-get "${apt_options[@]}" -q update
  DEBIAN_FRONTEND=noninteractive chroot "$at" apt-get "${apt_options[@]}" -q -y install "$@"
  printf '%s\n' "$GUEST" > "$at/etc/apt/sources.list.d/debian.sources"
  rm -f "$at/usr/sbin/policy-rc.d"
  bare "$out" "$at"
}

disk() {
  local out=$1 lower=$2 at=$1.root
  mkdir -p "$at" "$out"
  mount -t overlay overlay -o "lowerdir=$lower" "$at"
  cp -L "$at/initrd.img" "$out/initrd.img"
  unpack "$at/vmlinuz" "$out/vmlinux"
  truncate -s "${DISK_BYTES:?}" "$out/root.ext4"
  mke2fs -q -F -t ext4 -L rootfs -m 0 -E root_owner=0:0 -d "$at" "$out/root.ext4"
  umount "$at"
  rmdir "$at"
}

# unpack takes the kernel out of its self-extracting file: QEMU boots the ELF
# file by its PVH note, and no emulated CPU has to decompress it.
unpack() {
  local from=$1 to=$2 at
  while read -r at; do
    tail -c "+$((at + 1))" "$from" | xz -dcq > "$to" 2>/dev/null || true
    if [ "$(head -c 4 "$to" | tail -c 3)" = ELF ]; then return 0; fi
  done < <(LC_ALL=C grep -abo $'\xfd7zXZ' "$from" | cut -d: -f1)
  while read -r at; do
    tail -c "+$((at + 1))" "$from" | lz4 -dcq > "$to" 2>/dev/null || true
    if [ "$(head -c 4 "$to" | tail -c 3)" = ELF ]; then return 0; fi
  done < <(LC_ALL=C grep -abo $'\x02!L\x18' "$from" | cut -d: -f1)
  cp -L "$from" "$to" # slower to boot, but it boots
}

step=$1
shift
"$step" "$@"
