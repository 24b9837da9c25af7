#!/usr/bin/env bash
# Initializes the cluster at the first start, then runs PostgreSQL; services/provision creates the databases.
set -euo pipefail
# A folder of another user's volume may be named: PostgreSQL wants to own its own.
data="${POSTGRES_DATA:-/var/lib/postgresql/data}"
# Tests override these.
readonly secrets="${POSTGRES_SECRETS:-/run/secrets}" run="${POSTGRES_RUN:-/tmp}"

# Initialized in a folder of its own, then moved: PG_VERSION last, which says that the cluster is complete. A start that
# was killed at any moment leaves that folder, by which the next one knows that what lies next to it may go.
initialize() {
  local part
  if [ ! -d "$data/new" ] && [ -n "$(find "$data" -mindepth 1 -maxdepth 1 ! -name lost+found)" ]; then
    echo "postgres: $data has files and no PG_VERSION: it is not a cluster, or a damaged one; nothing was changed." >&2
    exit 1
  fi
  rm -rf "$data"/new/*
  initdb --pgdata "$data/new" --username postgres --pwfile "$secrets/postgres-password" \
    --auth-local trust --auth-host scram-sha-256 --encoding UTF8 --locale C.UTF-8 >/dev/null
  for part in "$data"/new/*; do
    [ "$part" != "$data/new/PG_VERSION" ] || continue
    rm -rf "${data:?}/${part##*/}"
    mv "$part" "$data/"
  done
  sync "$data"
  mv "$data/new/PG_VERSION" "$data/"
}

[ -f "$data/PG_VERSION" ] || initialize
[ ! -d "$data/new" ] || rmdir "$data/new"
# Who may connect, and how, is decided again at each start: by TLS only, unless TLS is 0.
readonly access="$run/pg_hba.conf"
if [ "${TLS:-1}" = 0 ]; then
  network=host tls=()
else
  # PostgreSQL rejects a private key that other users can read, and secrets are readable for all users of the container.
  (umask 077 && cat "$secrets/tls-postgres" >"$run/tls.pem")
  network=hostssl tls=(-c ssl=on -c "ssl_cert_file=$run/tls.pem" -c "ssl_key_file=$run/tls.pem")
fi
printf '%s\n' 'local all all trust' "$network all all all scram-sha-256" >"$access"
# wal_recycle=off: old WAL files are deleted, not reused with their content, because an erased key must be gone.
exec postgres -D "$data" -c listen_addresses='*' -c unix_socket_directories="$run" -c shared_buffers=32MB \
  -c max_connections=40 -c wal_recycle=off -c hba_file="$access" ${tls[@]+"${tls[@]}"}
