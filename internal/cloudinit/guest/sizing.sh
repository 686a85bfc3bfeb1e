# shellcheck shell=bash
# What PostgreSQL's settings follow from. Pure: numbers in, settings out.

# memory_mib prints the memory that PostgreSQL can use: the machine's, or the
# limit of the control group where the machine is a container.
memory_mib() {
  local total limit
  total=$(awk '/^MemTotal:/ { print int($2 / 1024) }' /proc/meminfo)
  limit=$(cat /sys/fs/cgroup/memory.max 2> /dev/null || true)
  case $limit in
    '' | *[!0-9]*) ;;
    *) [ $((limit / 1048576)) -ge "$total" ] || total=$((limit / 1048576)) ;;
  esac
  echo "$total"
}

# within LOW VALUE HIGH prints VALUE, kept between the two.
within() { echo $(($2 < $1 ? $1 : $2 > $3 ? $3 : $2)); }

# sizing MEMORY_MIB CONNECTIONS STORAGE_GIB prints settings. A quarter of the
# memory is for sorting, shared by all connections, never below PostgreSQL's
# default; the write-ahead log takes a tenth of the disk.
sizing() {
  local memory=$1 connections=$2 wal
  wal=$(within 128 $(($3 * 1024 / 10)) 8192)
  cat << END
shared_buffers = $((memory / 4))MB
effective_cache_size = $((memory * 3 / 4))MB
maintenance_work_mem = $(within 16 $((memory / 16)) 2048)MB
work_mem = $(within 4 $((memory / 4 / connections)) 256)MB
max_wal_size = ${wal}MB
min_wal_size = $((wal / 4))MB
random_page_cost = 1.1
END
}
