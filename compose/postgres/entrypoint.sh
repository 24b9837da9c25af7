#!/usr/bin/env bash
# Initializes the cluster at the first start, then runs PostgreSQL; services/provision creates the databases.
set -euo pipefail
# A folder of another user's volume may be named: PostgreSQL wants to own its own.
data="${POSTGRES_DATA:-/var/lib/postgresql/data}"

if [ ! -f "$data/PG_VERSION" ]; then
  # Initialized in a temporary folder and moved when complete, so that an interrupted start never leaves half a cluster.
  rm -rf "$data"/new
  initdb --pgdata "$data/new" --username postgres --pwfile /run/secrets/postgres-password \
    --auth-local trust --auth-host scram-sha-256 --encoding UTF8 --locale C.UTF-8 >/dev/null
  mv "$data"/new/* "$data"/
  rmdir "$data/new"
fi
# Who may connect, and how, is decided anew at each start: by TLS only, unless TLS is 0.
readonly access=/tmp/pg_hba.conf
if [ "${TLS:-1}" = 0 ]; then
  network=host tls=()
else
  # PostgreSQL rejects a private key that other users can read, and secrets are readable for all users of the container.
  (umask 077 && cat /run/secrets/tls-postgres >/tmp/tls.pem)
  network=hostssl tls=(-c ssl=on -c ssl_cert_file=/tmp/tls.pem -c ssl_key_file=/tmp/tls.pem)
fi
printf '%s\n' 'local all all trust' "$network all all all scram-sha-256" >"$access"
# wal_recycle=off: old WAL files are deleted, not reused with their content, because an erased key must be gone.
exec postgres -D "$data" -c listen_addresses='*' -c unix_socket_directories=/tmp -c shared_buffers=32MB \
  -c max_connections=40 -c wal_recycle=off -c hba_file="$access" ${tls[@]+"${tls[@]}"}
