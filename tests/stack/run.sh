#!/usr/bin/env bash
# Brings up a stack of the tests' own, runs the tests that need one, and removes it: `run.sh [PYTEST ARGUMENT...]`.
# KEEP=1 leaves it running, to inspect or to run again; the logs of all services are kept when a test fails.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Volumes of their own: a test may lose no other data.
export COMPOSE_PROJECT_NAME="${COMPOSE_PROJECT_NAME:-gamelake-test}"
readonly logs=build/stack-logs

finish() {
  local code=$?
  if [ "$code" != 0 ]; then
    mkdir -p "$logs"
    for service in $(compose/stack.sh ps --all --services); do
      compose/stack.sh logs --no-color --timestamps "$service" >"$logs/$service.log" 2>&1 || true
    done
    echo "The services' logs are in $logs."
  fi
  [ "${KEEP:-}" = 1 ] || compose/stack.sh --profile '*' down --volumes --remove-orphans >/dev/null 2>&1 || true
  exit "$code"
}

if ! docker info >/dev/null 2>&1; then
  echo "make test-stack: the Docker engine does not respond; run make doctor." >&2
  # Locally that is no failure of the code; in CI it is one.
  [ "${CI:-}" = true ] && exit 1
  exit 0
fi
trap finish EXIT
compose/up.sh
.venv/bin/pytest tests/stack --durations=15 --junitxml=build/junit/stack.xml "$@"
