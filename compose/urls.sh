#!/usr/bin/env bash
# Prints the running stack's addresses, users, the files of their passwords (never a password), and next steps;
# `urls.sh --tabs` prints only the addresses, with tabs between service, name, address and user.
# macOS still ships bash 3.2: no newer syntax here.
set -eu

here="$(cd "$(dirname "$0")" && pwd)"
readonly here compose_directory="${COMPOSE_DIRECTORY:-$here}"
# shellcheck source=compose/read_env.sh
. "$here/read_env.sh"
readonly host=127.0.0.1 form="${1:-}"
readonly certificate="the operator's certificate"

running_services() {
  docker ps --filter "label=com.docker.compose.project=$project" \
    --format '{{.Label "com.docker.compose.service"}}' 2>/dev/null | sort -u
}

is_running() { # SERVICE
  case "
$running
" in
    *"
$1
"*) return 0 ;;
    *) return 1 ;;
  esac
}

# SERVICE NAME ADDRESS USER; no line for a service that does not run.
row() {
  is_running "$1" || return 0
  case "$form" in
    --tabs) printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" ;;
    *) printf '  %-22s %-42s %s\n' "$2" "$3" "$4" ;;
  esac
}

# A path that opens the portal once.
new_entry() {
  local certificates="$compose_directory/certificates"
  curl --fail --silent --max-time 5 --request POST --cacert "$certificates/ca.pem" --cert "$certificates/operator.pem" \
    "https://$host:$PORTAL_PORT/entries"
}

password_in() { # SECRET
  echo "password in compose/secrets/$1"
}

read_env "$compose_directory"
readonly project="${COMPOSE_PROJECT_NAME:-gamelake}"
case "${TLS:-1}" in 0) scheme=http ;; *) scheme=https ;; esac
running="$(running_services)"
if [ -z "$running" ]; then
  echo "gamelake: the stack does not run: make up starts it." >&2
  exit 1
fi

[ "$form" = --tabs ] || echo
row portal "Portal" "http://$host:$PORTAL_BROWSER_PORT" "the address at the end, or of gamelake portal; figures, questions, what runs"
row ingest "Ingest gateway" "$scheme://$host:$INGEST_PORT" "each game by its key, compose/secrets/ingest-keys/keys.yaml"
row trino "Trino (SQL)" "$scheme://$host:$TRINO_PORT" "analyst, $(password_in trino-analyst); others in contracts/access.yaml"
row keycloak "Logins to Trino" "https://identity.localhost:$KEYCLOAK_PORT" "Keycloak: people of contracts/access.yaml, $(password_in 'trino-<user>')"
row superset "Superset" "https://$host:$SUPERSET_PORT" "people of contracts/access.yaml, $(password_in 'trino-<user>')"
row grafana "Grafana" "https://$host:$GRAFANA_PORT" "admin, $(password_in grafana-password)"
is_running grafana ||
  row portal "Dashboards" "http://$host:$PORTAL_BROWSER_PORT/d/gamelake-lag" "on the portal, instead of Grafana"
row prometheus "Prometheus" "https://$host:$PROMETHEUS_PORT" "$certificate"
row alertmanager "Alertmanager" "https://$host:$ALERTMANAGER_PORT" "$certificate"
row ingest-events "The query's Spark UI" "https://$host:$INGEST_EVENTS_PORT" "$certificate"
row spark-master "Spark master" "https://$host:$SPARK_MASTER_PORT" "$certificate"
row spark-history "Spark history" "https://$host:$SPARK_HISTORY_PORT" "$certificate"
row data-docs "Data Docs" "https://$host:$DATA_DOCS_PORT" "$certificate; the last validation's results"
row object-store "Object store, console" "$scheme://$host:$OBJECT_STORE_CONSOLE_PORT" "user and password in compose/secrets/object-store-root"
row object-store "Object store, S3" "$scheme://$host:$OBJECT_STORE_PORT" "keys in compose/secrets/object-store-*"
row registry "Schema registry" "$scheme://$host:$REGISTRY_PORT" "reading without a password; Confluent's API under /apis/ccompat/v7"
row kafka "Kafka" "$host:$KAFKA_PORT" "simulator (writes), $(password_in kafka-simulator)"
[ "$form" != --tabs ] || exit 0
cat <<EOT

Next:
  make smoke        send one event and wait until Trino returns it
  make demo-stack   simulate players
  make sql          query Trino; make sql Q="SELECT count(*) FROM silver.events"
  make portal       give the portal these documents, and the lineage of the tables
  make help         all targets
  .venv/bin/gamelake --help   status, load, faults to practise with, recoveries (make setup installs it)
EOT
echo "Clients trust the authority in compose/certificates/ca.pem. The operator's certificate is in operator.pem there,"
echo "for browsers in operator.p12, whose password is 'operator'."
is_running portal || exit 0
echo
if entry="$(new_entry 2>/dev/null)"; then
  echo "Open the portal (this address is valid once, for ten minutes; gamelake portal prints another):"
  echo "  http://$host:$PORTAL_BROWSER_PORT$entry"
else
  echo "Open the portal with .venv/bin/gamelake portal, once it responds."
fi
