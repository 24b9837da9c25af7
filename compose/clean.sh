#!/usr/bin/env bash
# Lists data and removes it after asking: the output of local programs under build/, and the stack's volumes with their
# containers. Keeps jars, .venv, images and secrets.
# `clean.sh --all-made` (make distclean) lists and removes all that make made but the stack's data: build, .venv, caches.
# YES=1 does not ask, DRY_RUN=1 only lists. macOS still ships bash 3.2: no newer syntax here.
set -eu

here="$(cd "$(dirname "$0")" && pwd)"
# shellcheck source=compose/read_env.sh
. "$here/read_env.sh"
read_env "$here"
# Tests override it.
readonly build="${BUILD_DIRECTORY:-$(dirname "$here")/build}"
readonly project="${COMPOSE_PROJECT_NAME:-gamelake}"
readonly ours="label=com.docker.compose.project=$project"

what="${1:-}"
case "$what" in
  "" | --all-made) ;;
  *)
    echo "usage: clean.sh [--all-made]" >&2
    exit 2
    ;;
esac

# All that make made in the checkout; build with the data in it, each by its name.
made() {
  local name
  [ ! -d "$build" ] || find "$build" -mindepth 1 -maxdepth 1 | sort
  for name in build .venv gamelake.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache; do
    [ ! -e "${build%/*}/$name" ] || echo "${build%/*}/$name"
  done
}

files() {
  [ -d "$build" ] || return 0
  find "$build" -mindepth 1 -maxdepth 1 ! -name jars ! -name java ! -name registry ! -name stamps | sort
}

# By label, not from the compose files, so that volumes of all overlays are included.
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

find_volumes() {
  if has_engine; then
    found_volumes="$(volumes)"
  else
    echo "The Docker engine does not respond: the stack's volumes, if any, are kept."
  fi
}

list_found() {
  echo "To be removed, with all contents:"
  [ -z "$found_files" ] || printf '%s\n' "$found_files" | sed 's/^/  /'
  [ -z "$found_volumes" ] || printf '%s\n' "$found_volumes" | sed 's/^/  the stack'\''s volume /'
}

confirmed() {
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

found_volumes=""
if [ "$what" = --all-made ]; then
  found_files="$(made)"
else
  found_files="$(files)"
  find_volumes
fi
if [ -z "$found_files$found_volumes" ]; then
  echo "There is nothing to remove."
  exit 0
fi
list_found
[ "${DRY_RUN:-}" != 1 ] || exit 0
if ! confirmed; then
  echo "Nothing was removed."
  exit 1
fi
remove
