#!/usr/bin/env bash
# Prepares Superset's database, people and dashboards, then serves them: one process with threads.
set -euo pipefail
umask 077

# Tests override these.
readonly secrets="${SUPERSET_SECRETS:-/run/secrets}" run="${SUPERSET_RUN:-/tmp}" program="${SUPERSET_PROGRAM:-/opt/superset/program}"

password="$(sed -n 's/^password=//p' "$secrets/postgres-superset")"
# A file keeps the password out of the environment, command lines and URLs. Passwords have letters, digits, '_', '.' and
# '-' only.
printf 'postgres:5432:superset:superset:%s\n' "$password" >"$run/pgpass"
export PGPASSFILE="$run/pgpass"
mkdir -p "$run/superset"
python "$program/provision.py"
exec gunicorn wsgi:application --bind "0.0.0.0:8088" --workers 1 --worker-class gthread --threads 8 --timeout 150 \
  --worker-tmp-dir "$run" --no-control-socket --limit-request-line 8190 --certfile "$secrets/tls-superset" --keyfile "$secrets/tls-superset" --log-level warning
