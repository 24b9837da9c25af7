#!/usr/bin/env bash
# Makes or restores a backup of the running stack, or with --demo of the output of `make demo`:
# `backup.sh [--demo] make [OPTION...]` or `backup.sh [--demo] restore FOLDER [OPTION...]`. It never takes the demo because the
# stack does not run: a daily backup would then be of the wrong platform, without a word.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=compose/read_env.sh
. compose/read_env.sh
read_env compose

fail() {
  echo "gamelake: $1, so there is no backup of it; 'make backup ON=demo' makes one of the demo." >&2
  exit 1
}

case "${1:-}" in
  --demo) exec .venv/bin/python -m tools.backup "$@" ;;
  make | restore) ;;
  *)
    sed -n '2,4s/^# //p' "$0" >&2
    exit 2
    ;;
esac
running="$(docker ps --quiet --filter "label=com.docker.compose.project=${COMPOSE_PROJECT_NAME:-gamelake}" \
  --filter label=com.docker.compose.service=object-store)" || fail "the Docker engine of the stack does not respond"
[ -n "$running" ] || fail "the stack does not run ('make up' starts it)"
exec .venv/bin/python -m tools.backup --stack "$@"
