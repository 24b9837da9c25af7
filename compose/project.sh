#!/usr/bin/env bash
# Names the project of a checkout that has no secrets yet: if the volumes of the project `gamelake` exist, they have the
# passwords of another checkout, so this one gets a name and volumes of its own, by a line in compose/.env.override.
# macOS still ships bash 3.2: no newer syntax here.
set -eu

here="$(cd "$(dirname "$0")" && pwd)"
# shellcheck source=compose/read_env.sh
. "$here/read_env.sh"
read_env "$here"

has_volumes() { # PROJECT
  [ -n "$(docker volume ls --quiet --filter "label=com.docker.compose.project=$1" 2>/dev/null)" ]
}

[ -z "${COMPOSE_PROJECT_NAME:-}" ] && [ ! -e "${SECRETS_DIRECTORY:-$here/secrets}" ] && has_volumes gamelake || exit 0
# The folder's name, in the characters of a project's name.
folder="$(basename "$(dirname "$here")" | tr '[:upper:]' '[:lower:]' | tr -cs 'a-z0-9\n' '-')"
name="gamelake-$folder" number=1
while has_volumes "$name"; do
  number=$((number + 1))
  name="gamelake-$folder-$number"
done
# The last line of a person's file may have no end.
[ ! -s "$here/.env.override" ] || [ -z "$(tail -c 1 "$here/.env.override")" ] || echo >>"$here/.env.override"
echo "COMPOSE_PROJECT_NAME=$name" >>"$here/.env.override"
echo "gamelake: the volumes of the project gamelake belong to another checkout; this one is $name (compose/.env.override)."
