#!/usr/bin/env bash
# Makes or restores a backup of the running stack, or else of the output of `make demo`:
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
