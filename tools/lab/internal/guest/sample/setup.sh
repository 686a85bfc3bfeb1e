#!/bin/bash
# setup.sh makes PostgreSQL out of the data disk, at every boot (see user-data.yaml).
set -euxo pipefail
exec > >(tee -a /var/log/lab-setup.log) 2>&1
trap 'echo "lab: state=failed line=$LINENO" > /dev/console' ERR
programs=/usr/lib/postgresql/15/bin
disk=/dev/disk/by-id/virtio-pgdata
if [ ! -x $programs/postgres ] || [ ! -x /usr/sbin/qemu-ga ]; then
  export DEBIAN_FRONTEND=noninteractive
  mkdir -p /etc/postgresql-common
  echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf
  apt-get -q update
  apt-get -q -y --no-install-recommends install qemu-guest-agent postgresql-15
  # Debian's package leaves the start to udev's next event for the port.
  systemctl start --no-block qemu-guest-agent.service
fi
test -b $disk
found=0
blkid -p $disk || found=$?
if [ $found = 2 ]; then mkfs.ext4 -q -m 0 $disk; fi
e2fsck -f -p $disk || [ $? = 1 ]
resize2fs $disk
mkdir -p /srv/pg
mount $disk /srv/pg
data=/srv/pg/data
if [ ! -e $data/PG_VERSION ]; then
  install -d -o postgres -g postgres -m 0700 $data
  setpriv --reuid=postgres --regid=postgres --init-groups \
    $programs/initdb -D $data --locale=C.UTF-8 --encoding=UTF8 --auth-local=peer --auth-host=scram-sha-256
fi
install -o postgres -g postgres -m 0600 -t $data /etc/lab/server.crt /etc/lab/server.key
printf 'hostssl all all 0.0.0.0/0 scram-sha-256\nlocal all all peer\n' > $data/pg_hba.conf
systemctl start lab-postgres.service
until setpriv --reuid=postgres --regid=postgres --init-groups psql -qXAt -c 'select 1'; do sleep 0.2; done
setpriv --reuid=postgres --regid=postgres --init-groups psql -qXAt -v ON_ERROR_STOP=1 <<'SQL'
select 'create role app login superuser' where not exists (select from pg_roles where rolname = 'app') \gexec
alter role app password 'written-by-hand';
SQL
touch /run/lab-ready
echo "lab: state=ready" > /dev/console
