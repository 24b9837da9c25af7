#!/usr/bin/env bash
# Trino's command line as one of its users: `sql.sh USER [ARGUMENT...]`; arguments are those of Trino's CLI.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=compose/read_env.sh
. ./read_env.sh
read_env .

readonly user="$1"
shift
container="$(./stack.sh ps --quiet --status running trino)"
if [ -z "$container" ]; then
  echo "Trino does not run. Start it with make up, or query the tables of make demo without it: ENGINE=duckdb." >&2
  exit 1
fi
if [ ! -f "secrets/trino-$user" ]; then
  echo "compose/secrets/trino-$user is missing: contracts/access.yaml has the users, and make up makes their passwords." >&2
  exit 1
fi
if [ "$TLS" = 0 ]; then
  server=(--server http://localhost:8080)
else
  server=(--server https://localhost:8080 --truststore-path /run/secrets/tls-ca --password)
fi
TRINO_PASSWORD="$(sed -n 's/^password=//p' "secrets/trino-$user")"
export TRINO_PASSWORD
terminal=()
[[ ! -t 0 || ! -t 1 ]] || terminal=(--tty)
# The password is passed by name, since others can see a command line.
exec docker exec --interactive ${terminal[@]+"${terminal[@]}"} --env TRINO_PASSWORD "$container" \
  trino "${server[@]}" --user "$user" --catalog delta "$@"
