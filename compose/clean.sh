#!/usr/bin/env bash
# Removes data, after saying exactly which and asking: what the desk's programs left under build/, and the stack's
# volumes with the containers that hold them. The jars, .venv, images and secrets stay.
# YES=1 does not ask, DRY_RUN=1 only says. macOS still ships bash 3.2: no newer syntax here.
set -eu

here="$(cd "$(dirname "$0")" && pwd)"
# Tests name another one.
readonly build="${BUILD_DIRECTORY:-$(dirname "$here")/build}"
readonly project="${COMPOSE_PROJECT_NAME:-gamelake}"
readonly ours="label=com.docker.compose.project=$project"

files() {
  [ -d "$build" ] || return 0
  find "$build" -mindepth 1 -maxdepth 1 ! -name jars ! -name registry ! -name stamps | sort
}

# Found by their label and not in the compose files, so that none of an overlay is overlooked.
volumes() {
  docker volume ls --quiet --filter "$ours" 2>/dev/null | sort
}

containers() {
  docker ps --all --quiet --filter "$ours"
}

networks() {
  docker network ls --quiet --filter "$ours"
}

has_engine() {
  command -v docker >/dev/null 2>&1 && docker info >/dev/null 2>&1
}

say_what() {
  echo "This would be removed, with all that is in it:"
  [ -z "$found_files" ] || printf '%s\n' "$found_files" | sed 's/^/  /'
  [ -z "$found_volumes" ] || printf '%s\n' "$found_volumes" | sed 's/^/  the stack'\''s volume /'
}

is_wanted() {
  local answer=""
  [ "${YES:-}" != 1 ] || return 0
  printf 'Remove it? [y/N] '
  read -r answer || true
  [ "$answer" = y ] || [ "$answer" = yes ]
}

remove() {
  local found
  [ -z "$found_files" ] || printf '%s\n' "$found_files" | while IFS= read -r found; do rm -rf "$found"; done
  [ -n "$found_volumes" ] || return 0
  containers | while IFS= read -r found; do docker rm --force --volumes "$found" >/dev/null; done
  networks | while IFS= read -r found; do docker network rm "$found" >/dev/null; done
  printf '%s\n' "$found_volumes" | while IFS= read -r found; do docker volume rm "$found" >/dev/null; done
}

found_files="$(files)"
found_volumes=""
if has_engine; then
  found_volumes="$(volumes)"
else
  echo "No Docker engine answers: the stack's volumes, if there are any, stay."
fi
if [ -z "$found_files$found_volumes" ]; then
  echo "There is nothing to remove."
  exit 0
fi
say_what
[ "${DRY_RUN:-}" != 1 ] || exit 0
if ! is_wanted; then
  echo "Nothing was removed."
  exit 1
fi
remove
