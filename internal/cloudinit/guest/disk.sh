# shellcheck shell=bash disable=SC2034,SC2154 # the variables are bootstrap.sh's
# The data disk: found by serial, recognised by UUID, formatted once.

probe() { blkid -p -s "$1" -o value "$(readlink -f "$device")"; }

data_disk() {
  step=disk
  wait_for_device
  if ! mountpoint -q "$mount"; then
    # An image may hold a cluster of its own, which the boot has started here.
    systemctl stop 'postgresql@*.service'
    admit
    attach
    grow
    grown || grow_detached
  else
    grow
  fi
  chown root:root "$mount"
  chmod 0755 "$mount"
  install -d -m 0700 -o root -g root "$state"
  say ok "$(($(cat "$run/filesystem-bytes") / 1048576)) MiB"
}

# attach mounts by serial, after the UUID was compared: a clone may carry the
# same UUID. No fstab: then this works on any root disk.
attach() {
  mkdir -p "$mount"
  mount -t ext4 -o noatime "$device" "$mount" || die "mounting the data disk failed"
}

wait_for_device() {
  local attempt
  udevadm settle --timeout=30 --exit-if-exists="$device" || true
  for attempt in $(seq 15); do
    [ ! -b "$device" ] || return 0
    [ "$attempt" -ne 4 ] || say waiting "no disk with serial pgdata yet"
    sleep 2
  done
  die "no disk with serial pgdata; the root disk is never used instead"
}

# admit lets only this database's filesystem through, or makes it on a blank
# disk in the first boot. Anything else ends the boot and changes nothing.
admit() {
  local status label uuid type
  blkid -p "$(readlink -f "$device")" > /dev/null
  status=$?
  label=$(probe LABEL)
  uuid=$(probe UUID)
  type=$(probe TYPE)
  # 2: looked, and found nothing. pgdata-new: our own mkfs, cut off half way.
  if [ "$status" -eq 2 ] || { [ "$label" = pgdata-new ] && [ "$uuid" = "$DBAAS_INSTANCE_ID" ]; }; then
    format
    return
  fi
  [ "$status" -eq 0 ] || die "the data disk cannot be probed (blkid exit $status); nothing formatted"
  [ "$uuid" = "$DBAAS_INSTANCE_ID" ] ||
    die "the data disk holds ${type:-something unknown} with UUID ${uuid:-none}, not the filesystem of this database ($DBAAS_INSTANCE_ID); nothing formatted"
  e2fsck -p "$device" > "$run/fsck" 2>&1
  [ $? -lt 4 ] || die "e2fsck: $(tail -n 1 "$run/fsck")"
}

format() {
  [ -s "$secret/ca.key" ] || die "the data disk is blank but this database has been bootstrapped before; nothing formatted"
  say formatting
  mkfs.ext4 -q -F -m 0 -E nodiscard -L pgdata-new -U "$DBAAS_INSTANCE_ID" "$device" || die "mkfs failed"
  # Only the new label says that mkfs came to its end.
  { sync "$device" && e2label "$device" pgdata && sync "$device"; } || die "labelling the data disk failed"
}

# grow makes the filesystem as large as its disk while it is mounted, which the
# kernel's journal makes safe against a power cut.
grow() {
  local real
  real=$(readlink -f "$device")
  resize2fs "$real" > "$run/resize" 2>&1 || say warning "$(grep -m 1 '^resize2fs: ' "$run/resize")"
  measure
}

# grow_online is what the disk's RESIZE event starts. Its last word is how the
# provider sees a growth: the document of this boot names the size of before.
grow_online() {
  step=grow
  mountpoint -q "$mount" || die "the data disk is not mounted"
  grow
  say ok "$(($(cat "$run/filesystem-bytes") / 1048576)) MiB"
}

measure() {
  dumpe2fs -h "$(readlink -f "$device")" 2> /dev/null | awk -F': *' '
    $1 == "Block count" { count = $2 } $1 == "Block size" { size = $2 }
    END { printf "%.0f\n", count * size }' > "$run/.filesystem-bytes"
  mv -f "$run/.filesystem-bytes" "$run/filesystem-bytes"
}

# grown: the filesystem has the size that was asked for, less what an encrypted
# volume keeps for its header.
grown() {
  local bytes=0
  read -r bytes 2> /dev/null < "$run/filesystem-bytes"
  [ "$bytes" -ge $((DBAAS_DATA_GIB * 1073741824 - 67108864)) ]
}

# grow_detached is for a machine that is a container, whose kernel may refuse to
# grow what is mounted. Only at boot: nothing uses the disk yet.
grow_detached() {
  local size
  size=$(blockdev --getsize64 "$(readlink -f "$device")")
  [ "$size" -gt "$(cat "$run/filesystem-bytes")" ] || return 0
  systemd-detect-virt -q --container || return 0
  umount "$mount" || die "detaching the data disk failed"
  e2fsck -f -p "$device" > "$run/fsck" 2>&1
  [ $? -lt 4 ] || die "e2fsck: $(tail -n 1 "$run/fsck")"
  resize2fs "$device" > "$run/resize" 2>&1 || die "growing the data disk failed: $(tail -n 1 "$run/resize")"
  attach
  measure
}
