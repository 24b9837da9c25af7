#!/usr/bin/env bash
# Brings up the stack with Superset and without observability, plays games, tests the dashboards, and removes all of it:
# `bi.sh [PYTEST ARGUMENT...]`. KEEP=1 leaves it running; logs are kept when a test fails.
set -euo pipefail
cd "$(dirname "$0")/../.."

export COMPOSE_PROJECT_NAME="${COMPOSE_PROJECT_NAME:-gamelake-test}" BI=1 WORKERS=1
readonly logs=build/bi/logs

finish() {
  local code=$?
  if [ "$code" != 0 ]; then
    compose/stack.sh logs --no-color --timestamps >"$logs" 2>&1 || true
    echo "The services' logs are in $logs."
  fi
  [ "${KEEP:-}" = 1 ] || compose/stack.sh --profile '*' down --volumes --remove-orphans >/dev/null 2>&1 || true
  exit "$code"
}

if ! docker info >/dev/null 2>&1; then
  echo "make test-bi: the Docker engine does not respond; run make doctor." >&2
  # Locally that is not a failure of the code; in CI it is one.
  [ "${CI:-}" = true ] && exit 1
  exit 0
fi
mkdir -p "${logs%/*}"
trap finish EXIT
compose/secrets.sh
compose/images.sh
compose/images.sh superset
compose/certificates.sh
compose/passwords.sh
compose/stack.sh up --detach --wait --wait-timeout 900 catalog ingest ingest-events serving spark-worker superset
compose/stack.sh run --rm --no-deps tools python -m tools.simulator --target http --events 20000 --games 5 --rate 500
.venv/bin/pytest tests/stack/test_dashboards_of_superset.py --durations=15 --junitxml=build/junit/bi.xml "$@"
