#!/usr/bin/env bash
# Makes a backup, or puts one back, of the running stack, or else of what `make demo` has left:
# `backup.sh make [OPTION...]` or `backup.sh restore FOLDER [OPTION...]`.
set -eu

cd "$(dirname "$0")/.."
of=--demo
if command -v docker >/dev/null 2>&1 &&
  [ -n "$(docker ps --quiet --filter "label=com.docker.compose.project=${COMPOSE_PROJECT_NAME:-gamelake}" \
    --filter label=com.docker.compose.service=object-store 2>/dev/null)" ]; then
  of=--stack
fi
exec .venv/bin/python -m tools.backup "$of" "$@"
