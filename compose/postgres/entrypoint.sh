#!/usr/bin/env bash
# Makes the cluster at the first start, then runs PostgreSQL; its databases are services/provision/databases.py's.
set -euo pipefail
data=/var/lib/postgresql/data

if [ ! -f "$data/PG_VERSION" ]; then
  # Made beside and moved whole, so that a start that is cut off begins anew and never with half a cluster.
  rm -rf "$data"/new
  initdb --pgdata "$data/new" --username postgres --pwfile /run/secrets/postgres-password \
    --auth-local trust --auth-host scram-sha-256 --encoding UTF8 --locale C.UTF-8 >/dev/null
  echo 'host all all all scram-sha-256' >>"$data/new/pg_hba.conf"
  mv "$data"/new/* "$data"/
  rmdir "$data/new"
fi
# Old files of the log are deleted, and not kept for later with what stands in them: an erased key must be gone.
exec postgres -D "$data" -c listen_addresses='*' -c unix_socket_directories=/tmp -c shared_buffers=32MB \
  -c max_connections=40 -c wal_recycle=off
