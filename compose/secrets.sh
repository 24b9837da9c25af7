#!/usr/bin/env bash
# Creates the stack's secrets, once, as files for this user only: `secrets.sh` creates missing ones, `secrets.sh --check`
# rejects weak ones. It never overwrites a secret, and never prints one.
# macOS still ships bash 3.2: no newer syntax here.
set -eu

readonly directory="${SECRETS_DIRECTORY:-$(cd "$(dirname "$0")" && pwd)/secrets}"
readonly games_file="${GAMES_FILE:-$(cd "$(dirname "$0")/.." && pwd)/contracts/games.yaml}"
readonly access_file="${ACCESS_FILE:-$(cd "$(dirname "$0")/.." && pwd)/contracts/access.yaml}"
readonly object_store_users="root ingest-events serving privacy trino catalog maintenance delivery uploads audit metrics"
readonly kafka_users="admin ingest ingest-events live-ops offers simulator maintenance object-store delivery trino audit"
readonly database_users="registry vault" registry_users="writer"
# Prometheus reads its passwords in Trino and for Kafka's metrics from files without a name. With trino-internal Trino signs its requests to itself.
readonly bare_passwords="postgres-password grafana-password kafka-metrics spark-rpc trino-prometheus trino-internal"
# The games' keys are in a folder of their own, which containers mount: they see the file that replaces another one.
readonly key_files="ingest-keys/keys.yaml vault-keys"
readonly shortest=16
readonly well_known="admin changeit changeme default gamelake grafana guest kafka letmein minio minio123 minioadmin
  password passw0rd postgres prometheus qwerty root secret test trino 123456 12345678 1234567890"

usage() {
  cat <<EOT
usage: secrets.sh [--check | --help]
  (nothing)  create missing secrets, then check all of them
  --check    check only: all exist, none is well known or shorter than $shortest characters
The secrets are in $directory.
EOT
}

fail() {
  echo "gamelake: $1" >&2
  exit 1
}

random_text() { # 192 bits as 48 letters and digits, which need no quoting in any service
  head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n'
}

# Written to a temporary file and renamed, so that a secret is never incomplete.
keep() { # NAME, the content on standard input
  local unfinished="$directory/.${1##*/}.unfinished"
  rm -f "$unfinished"
  cat >"$unfinished"
  # Containers read it with other user ids; the directory's mode excludes other users of this machine.
  chmod 0444 "$unfinished"
  mv "$unfinished" "$directory/$1"
  echo "made $1"
}

is_missing() { # NAME
  [ ! -e "$directory/$1" ]
}

make_users() { # SERVICE USER...
  local service="$1" user name
  shift
  for user in "$@"; do
    name="$service-$user"
    ! is_missing "$name" || printf 'username=%s\npassword=%s\n' "$user" "$(random_text)" | keep "$name"
  done
}

make_missing() {
  local user name
  mkdir -p "$directory"
  chmod 0700 "$directory"
  for user in $object_store_users; do
    name="object-store-$user"
    ! is_missing "$name" ||
      printf '[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n' "gamelake-$user" "$(random_text)" | keep "$name"
  done
  make_users kafka $kafka_users
  make_users postgres $database_users
  make_users registry $registry_users
  make_users trino $(trino_users)
  for name in $bare_passwords; do
    ! is_missing "$name" || random_text | keep "$name"
  done
  if [ "${OIDC:-0}" = keycloak ]; then
    ! is_missing oidc-client || random_text | keep oidc-client
    make_users keycloak visitor
  fi
  if [ "${BI:-0}" = 1 ]; then
    make_users postgres superset
    ! is_missing superset-key || random_text | keep superset-key
  fi
  ! is_missing vault-keys || vault_keys | keep vault-keys
  make_game_keys
}

random_key() { # 256 bits in base64
  head -c 32 /dev/urandom | base64 | tr -d '\n'
}

vault_keys() {
  printf 'index: "%s"\ncurrent: first\nkeys:\n  first: "%s"\n' "$(random_key)" "$(random_key)"
}

games() { # the names of the contract's games, one per line
  # Other lists of the file have names too.
  sed -n '/^games:/,/^[a-z]/s/^ *- name: *\([a-z0-9_]*\).*/\1/p' "$games_file"
}

trino_users() { # the names of the users in the access contract, one per line, without prometheus
  sed -n '/^users:/,/^[a-z]/s/^ *- *{name: *\([a-z0-9-]*\).*/\1/p' "$access_file" | grep -v '^prometheus$'
}

# A key for each game of the contract that has none; existing keys are not changed.
make_game_keys() {
  local game missing="" kept="keys:" file="$directory/ingest-keys/keys.yaml"
  for game in $(games); do
    [ -f "$file" ] && grep -q "game: $game," "$file" && continue
    missing="$missing$(printf '  - {id: %s-1, game: %s, secrets: [%s]}' "$game" "$game" "$(random_text)")
"
  done
  [ -n "$missing" ] || return 0
  mkdir -p "${file%/*}"
  chmod 0755 "${file%/*}"
  # Not in the pipe: a file that can't be read would end in a file without its keys.
  [ ! -f "$file" ] || kept="$(cat "$file")"
  printf '%s\n%s' "$kept" "$missing" | keep ingest-keys/keys.yaml
}

value_of() { # NAME KEY
  sed -n "s/^ *$2 *= *//p" "$directory/$1"
}

refuse() { # NAME PROBLEM
  fail "$directory/$1: $2; remove that file and run 'make up', which creates it again ('make clean' first if the stack has run with it)."
}

check_value() { # NAME WHAT VALUE SHORTEST
  local known lower
  lower="$(printf '%s' "$3" | tr '[:upper:]' '[:lower:]')"
  [ -n "$3" ] || refuse "$1" "there is no $2"
  for known in $well_known; do
    [ "$lower" != "$known" ] || refuse "$1" "the $2 is well known"
  done
  [ "${#3}" -ge "$4" ] || refuse "$1" "the $2 has less than $4 characters"
  # Other characters need quoting, which differs between Java, INI and shell files.
  case "$3" in
    *[!A-Za-z0-9_.-]*) refuse "$1" "the $2 has characters other than letters, digits, '_', '.' and '-'" ;;
  esac
}

check_directory() {
  [ -d "$directory" ] || fail "there are no secrets yet: run 'make up', which creates them."
  case "$(ls -ld "$directory")" in
    d???------*) ;;
    *) fail "$directory is accessible for other users of this machine: run 'chmod 700 $directory'." ;;
  esac
}

check_file() { # NAME
  [ -f "$directory/$1" ] || fail "$directory/$1 is missing: run 'make up', which creates it."
  [ -r "$directory/$1" ] || fail "$directory/$1 can't be read: run 'chmod 444 $directory/$1'."
}

check_users() { # SERVICE WHAT_THE_NAME_IS USER...
  local service="$1" meaning="$2" user name
  shift 2
  for user in "$@"; do
    name="$service-$user"
    check_file "$name"
    [ "$(value_of "$name" username)" = "$user" ] || refuse "$name" "it must contain username=$user, $meaning"
    check_value "$name" password "$(value_of "$name" password)" "$shortest"
  done
}

# The secret of Trino as a client of the provider for logins: a provider of one's own has issued it.
check_provider() {
  local file="$directory/oidc-client"
  [ "${OIDC:-0}" != 0 ] || return 0
  [ -s "$file" ] || fail "$file is missing or empty: write the secret into it that the provider of OIDC_ISSUER has for its client."
  case "$(ls -l "$file")" in
    -??????r??*) ;;
    *) fail "$file can't be read by Trino's container: run 'chmod 444 $file'." ;;
  esac
}

check_dashboards() {
  [ "${BI:-0}" = 1 ] || return 0
  check_users postgres "the role's name" superset
  check_file superset-key
  check_value superset-key key "$(cat "$directory/superset-key")" "$shortest"
}

check_all() {
  local user name
  check_directory
  for user in $object_store_users; do
    name="object-store-$user"
    check_file "$name"
    # MinIO requires at least three characters.
    check_value "$name" aws_access_key_id "$(value_of "$name" aws_access_key_id)" 3
    check_value "$name" aws_secret_access_key "$(value_of "$name" aws_secret_access_key)" "$shortest"
  done
  check_users kafka "the name in compose/kafka/topics.yaml" $kafka_users
  check_users postgres "the role's name" $database_users
  check_users registry "the name in compose/registry/entrypoint.sh" $registry_users
  check_users trino "the name in contracts/access.yaml" $(trino_users)
  check_provider
  check_dashboards
  # Their services check the contents of these two.
  for name in $key_files; do
    check_file "$name"
  done
  for name in $bare_passwords; do
    check_file "$name"
    check_value "$name" password "$(cat "$directory/$name")" "$shortest"
  done
}

case "${1:-}" in
  "")
    make_missing
    check_all
    ;;
  --check) check_all ;;
  --help) usage ;;
  *)
    usage >&2
    exit 1
    ;;
esac
