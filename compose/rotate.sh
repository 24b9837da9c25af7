#!/usr/bin/env bash
# Replaces a secret of the running stack, or the certificates, and restarts the containers that read it at their start only, one
# after the other: `rotate.sh SECRET [SERVICE...]`. macOS still ships bash 3.2: no newer syntax here.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
# shellcheck source=compose/read_env.sh
. "$here/read_env.sh"
read_env "$here"
readonly here secrets="${SECRETS_DIRECTORY:-$here/secrets}" project="${COMPOSE_PROJECT_NAME:-gamelake}"
readonly patience_seconds=600

usage() {
  cat <<EOT
usage: rotate.sh [--dry-run] SECRET [SERVICE...]
  SECRET     certificates (of all services), a name in compose/secrets: grafana-password, kafka-*,
             object-store-*, postgres-*, registry-writer, spark-rpc, trino-*; or all: each of them, then the certificates
  SERVICE    restart these services only, of those that have the secret; the others need it at their next start
  --dry-run  only say what would be done
Other secrets: 'compose/game_key.sh' for games' keys, 'python -m jobs.vault_keys' for the vault's (docs/operations.md).
EOT
}

fail() {
  echo "rotate: $1" >&2
  exit "${2:-1}"
}

# Says what it runs, and runs it unless this is a dry run.
run() { # COMMAND...
  echo "rotate: $*"
  [ "$dry_run" = 1 ] || "$@"
}

# The running containers that have a file mounted, as lines of id and service.
containers_with() { # FILE, its end; {} is the service's name
  local id service mounts
  docker ps --quiet --filter "label=com.docker.compose.project=$project" | while read -r id; do
    service="$(docker inspect --format '{{index .Config.Labels "com.docker.compose.service"}}' "$id")"
    mounts="$(docker inspect --format '{{range .Mounts}}{{println .Source}}{{end}}' "$id")"
    # Not in a pipe: grep ends with the first match, which is an error of the program before it.
    ! grep -q "/${1//\{\}/$service}\$" <<<"$mounts" || echo "$id $service"
  done
}

await_health() { # ID SERVICE
  local deadline=$((SECONDS + patience_seconds)) health
  until health="$(docker inspect --format '{{if .State.Health}}{{.State.Health.Status}}{{else}}{{.State.Status}}{{end}}' "$1")" &&
    { [ "$health" = healthy ] || [ "$health" = running ]; }; do
    [ "$SECONDS" -lt "$deadline" ] || fail "$2 is $health after $patience_seconds s; 'make logs S=$2' may say why"
    sleep 1
  done
  echo "rotate: $2 is $health"
}

is_wanted() { # SERVICE
  local each
  [ ${#only[@]} -gt 0 ] || return 0
  for each in "${only[@]}"; do [ "$each" != "$1" ] || return 0; done
  return 1
}

wanted_containers_with() { # FILE
  local id service
  containers_with "$1" >"$all"
  while read -r id service; do
    ! is_wanted "$service" || echo "$id $service"
  done <"$all"
}

restart_those_with() { # FILE
  local id service
  wanted_containers_with "$1" >"$list"
  while read -r id service <&3; do
    echo "rotate: restarting $service"
    [ "$dry_run" != 1 ] || continue
    docker restart "$id" >/dev/null
    await_health "$id" "$service"
  done 3<"$list"
}

# At once: those with the old secret do not accept those with the new one.
restart_together_those_with() { # FILE
  local id service ids=()
  wanted_containers_with "$1" >"$list"
  while read -r id service; do
    echo "rotate: restarting $service"
    ids+=("$id")
  done <"$list"
  [ "$dry_run" != 1 ] && [ ${#ids[@]} -gt 0 ] || return 0
  docker restart "${ids[@]}" >/dev/null
  while read -r id service <&3; do
    await_health "$id" "$service"
  done 3<"$list"
}

new_secret() { # NAME
  [ -f "$secrets/$1" ] || fail "there is no secret $1 in $secrets" 2
  replaced="$1"
  run mv "$secrets/$1" "$secrets/.$1.previous"
  run "$here/secrets.sh"
  [ "$dry_run" = 1 ] || [ -f "$secrets/$1" ] ||
    fail "secrets.sh makes no $1: set the options of 'make up' here too, such as BI=1, or in compose/.env.override"
  run rm -f "$secrets/.$1.previous"
  replaced=""
}

# A secret that could not be replaced stays the one that the services have.
keep_previous() {
  [ -n "$replaced" ] && [ -f "$secrets/.$replaced.previous" ] && [ ! -f "$secrets/$replaced" ] || return 0
  mv "$secrets/.$replaced.previous" "$secrets/$replaced"
  echo "rotate: $replaced is as it was" >&2
}

# The superuser connects over the container's own socket, and the password comes by standard input.
set_superuser_password() {
  echo "rotate: ALTER ROLE postgres PASSWORD ..."
  [ "$dry_run" != 1 ] || return 0
  printf "ALTER ROLE postgres PASSWORD '%s';\n" "$(cat "$secrets/postgres-password")" |
    "$here/stack.sh" exec --no-TTY postgres psql --quiet --host /tmp --username postgres --set ON_ERROR_STOP=1
}

# Replaces each secret that this command knows, then the certificates; continues if one fails.
rotate_all() {
  local file name failed=""
  for file in "$secrets"/*; do
    name="${file##*/}"
    case "$name" in
      ingest-keys | vault-keys | trino-password-hashes | object-store-metrics-token) continue ;;
      # Superset's database has values that are encrypted with it.
      superset-key) continue ;;
      # A login provider has these.
      oidc-* | keycloak-*) continue ;;
    esac
    rotate_one "$name" || failed="$failed $name"
  done
  rotate_one certificates || failed="$failed certificates"
  [ -z "$failed" ] || fail "not replaced:$failed"
}

rotate_one() { # SECRET
  local options=()
  [ "$dry_run" != 1 ] || options=(--dry-run)
  "$here/rotate.sh" ${options[@]+"${options[@]}"} "$1"
}

require_running() { # SERVICE
  [ -n "$("$here/stack.sh" ps --quiet --status running "$1")" ] || fail "$1 does not run: start it, to set its new secret"
}

has_volume() { # NAME
  docker volume inspect "${project}_$1" >/dev/null 2>&1
}

# Grafana has a hash of it in its database. The password comes by standard input.
set_grafana_password() {
  echo "rotate: grafana cli admin reset-admin-password ..."
  [ "$dry_run" != 1 ] || return 0
  "$here/stack.sh" exec --no-TTY grafana grafana cli admin reset-admin-password --password-from-stdin <"$secrets/grafana-password"
}

dry_run=0
case "${1:-}" in
  --help)
    usage
    exit
    ;;
  --dry-run) dry_run=1 && shift ;;
esac
[ $# -gt 0 ] || { usage >&2 && exit 2; }
readonly secret="$1" dry_run
shift
only=(${@+"$@"})
list="$(mktemp)" all="$(mktemp)"
replaced=""
trap 'keep_previous; rm -f "$list" "$all"' EXIT

case "$secret" in
  all)
    [ ${#only[@]} = 0 ] || fail "all secrets are for all services" 2
    rotate_all
    ;;
  certificates)
    run "$here/certificates.sh" --renew
    # All others read a renewed certificate while they run (docs/security.md).
    [ ${#only[@]} -gt 0 ] || only=(grafana ingest-events kafka keycloak object-store postgres registry spark-history spark-master
      spark-worker superset trino)
    restart_those_with "certificates/{}.pem"
    ;;
  registry-writer | spark-rpc)
    new_secret "$secret"
    restart_together_those_with "secrets/$secret"
    ;;
  kafka-admin | kafka-metrics | object-store-root | trino-internal)
    new_secret "$secret"
    restart_those_with "secrets/$secret"
    ;;
  kafka-*)
    new_secret "$secret"
    run "$here/stack.sh" run --rm --no-deps create-topics
    restart_those_with "secrets/$secret"
    ;;
  object-store-metrics-token)
    fail "$secret is made of object-store-metrics: rotate that" 2
    ;;
  object-store-metrics)
    new_secret "$secret"
    run "$here/passwords.sh"
    run "$here/stack.sh" run --rm --no-deps create-buckets
    restart_those_with secrets/object-store-metrics-token
    ;;
  object-store-*)
    new_secret "$secret"
    run "$here/stack.sh" run --rm --no-deps create-buckets
    restart_those_with "secrets/$secret"
    ;;
  grafana-password)
    # Without a database, Grafana takes the secret at its first start.
    if has_volume grafana; then
      require_running grafana
      new_secret "$secret"
      set_grafana_password
    else
      new_secret "$secret"
    fi
    ;;
  postgres-password)
    require_running postgres
    new_secret "$secret"
    set_superuser_password
    ;;
  postgres-*)
    new_secret "$secret"
    run "$here/stack.sh" run --rm --no-deps create-databases
    restart_those_with "secrets/$secret"
    ;;
  trino-password-hashes)
    fail "$secret is made of Trino's passwords: rotate one of them" 2
    ;;
  trino-*)
    new_secret "$secret"
    run "$here/passwords.sh"
    restart_those_with secrets/trino-password-hashes
    restart_those_with "secrets/$secret"
    ;;
  *)
    usage >&2
    fail "'$secret' is not a secret that this command replaces" 2
    ;;
esac
