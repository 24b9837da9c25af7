#!/usr/bin/env bash
# Initializes the cluster at the first start, then runs PostgreSQL; services/provision creates the databases.
set -euo pipefail
data=/var/lib/postgresql/data

if [ ! -f "$data/PG_VERSION" ]; then
  # Initialized in a temporary folder and moved when complete, so that an interrupted start never leaves half a cluster.
  rm -rf "$data"/new
  initdb --pgdata "$data/new" --username postgres --pwfile /run/secrets/postgres-password \
    --auth-local trust --auth-host scram-sha-256 --encoding UTF8 --locale C.UTF-8 >/dev/null
  echo 'host all all all scram-sha-256' >>"$data/new/pg_hba.conf"
  mv "$data"/new/* "$data"/
  rmdir "$data/new"
fi
# wal_recycle=off: old WAL files are deleted, not reused with their content, because an erased key must be gone.
exec postgres -D "$data" -c listen_addresses='*' -c unix_socket_directories=/tmp -c shared_buffers=32MB \
  -c max_connections=40 -c wal_recycle=off
