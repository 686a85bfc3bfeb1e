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

# sizing MEMORY_MIB VCPUS CONNECTIONS STORAGE_GIB prints settings. A quarter of
# the memory is PostgreSQL's own cache, another quarter is for sorting, shared by
# all connections but never below PostgreSQL's default. Three autovacuum workers
# run at any time, so each has less than an index build that somebody asks for.
# The write-ahead log takes a tenth of the disk.
sizing() {
  local memory=$1 vcpus=$2 connections=$3 wal
  wal=$(within 128 $(($4 * 1024 / 10)) 8192)
  cat << END
shared_buffers = $((memory / 4))MB
effective_cache_size = $((memory * 3 / 4))MB
work_mem = $(within 4 $((memory / 4 / connections)) 256)MB
maintenance_work_mem = $(within 16 $((memory / 16)) 2048)MB
autovacuum_work_mem = $(within 16 $((memory / 64)) 512)MB
max_wal_size = ${wal}MB
min_wal_size = $((wal / 4))MB
max_worker_processes = $(within 8 "$vcpus" 1024)
max_parallel_workers = $(within 1 "$vcpus" 1024)
max_parallel_workers_per_gather = $(within 0 $((vcpus / 2)) 4)
max_parallel_maintenance_workers = $(within 0 $((vcpus / 2)) 4)
random_page_cost = 1.1
END
}
