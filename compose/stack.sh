#!/usr/bin/env bash
# Runs docker compose with the stack's files: `stack.sh [--minimal] COMMAND...`; OFFICIAL=1, here or in .env.override,
# uses the projects' official images; OIDC=1 or OIDC=keycloak adds logins to Trino by OpenID Connect; BI=1 adds Superset.
# Grafana is on no package registry: if its image is not present and can't be pulled, it is omitted.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=compose/read_env.sh
. ./read_env.sh
read_env .

readonly pull_failed=../build/stack-without-grafana

has_grafana() {
  local image="$GRAFANA_IMAGE"
  docker image inspect "$image" >/dev/null 2>&1 && return
  # Try once: otherwise every command would wait for a registry that does not respond.
  [ ! -f "$pull_failed" ] || return 1
  docker pull --quiet "$image" >/dev/null 2>&1 && return
  mkdir -p "${pull_failed%/*}" && touch "$pull_failed"
  echo "stack: Grafana is omitted, because no container registry responds; the portal shows its dashboards." >&2
  return 1
}

case "$TLS" in
  1) export TLS_ON=1 SCHEME=https CA_FILE=/run/secrets/tls-ca PGSSLMODE=verify-full ;;
  0)
    export TLS_ON="" SCHEME=http CA_FILE="" PGSSLMODE=disable
    echo "stack: warning: TLS is 0: services talk in the clear, for comparisons of speed only." >&2
    ;;
  *)
    echo "stack: TLS is '$TLS'; it must be 1, or 0 for comparisons." >&2
    exit 1
    ;;
esac
files=(--file compose.yaml)
official=(--file compose.official.yaml)
if [ "${1:-}" = "--minimal" ]; then
  shift
else
  files+=(--file compose.serving.yaml --file compose.observability.yaml --file compose.quality.yaml)
  ! has_grafana || files+=(--file compose.grafana.yaml)
  official+=(--file compose.official.observability.yaml)
fi
# Not .env.override: read_env has read it, by its own rules, and a variable counts more than a file.
environment=(--env-file .env)
case "${OIDC:-0}" in
  0) ;;
  1 | keycloak)
    if [ "$TLS" = 0 ]; then
      echo "stack: OIDC needs TLS: set OIDC or TLS to another value." >&2
      exit 1
    fi
    files+=(--file compose.oidc.yaml)
    ;;
  *)
    echo "stack: OIDC is '$OIDC'; it must be 0, 1 for a provider of your own, or keycloak for one to try." >&2
    exit 1
    ;;
esac
if [ "${OIDC:-0}" = keycloak ]; then
  files+=(--file compose.keycloak.yaml)
  export OIDC_ISSUER="https://identity.localhost:$KEYCLOAK_PORT/realms/gamelake"
fi
case "${BI:-0}" in
  0) ;;
  1)
    if [ "$TLS" = 0 ]; then
      echo "stack: BI needs TLS: set BI or TLS to another value." >&2
      exit 1
    fi
    files+=(--file compose.bi.yaml)
    ;;
  *)
    echo "stack: BI is '$BI'; it must be 0, or 1 for Superset." >&2
    exit 1
    ;;
esac
if [ "${OFFICIAL:-}" = 1 ]; then
  files+=("${official[@]}")
  environment+=(--env-file .env.official)
fi
exec docker compose "${environment[@]}" "${files[@]}" "$@"
