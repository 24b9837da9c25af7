#!/usr/bin/env bash
# Brings up Trino with logins at a provider, the object store and the provider, tests the logins, and removes all of it:
# `oidc.sh [PYTEST ARGUMENT...]`. KEEP=1 leaves it running; logs are kept when a test fails.
set -euo pipefail
cd "$(dirname "$0")/../.."

export COMPOSE_PROJECT_NAME="${COMPOSE_PROJECT_NAME:-gamelake-test}" OIDC=keycloak KEYCLOAK_REALM="$PWD/build/oidc/realm.json"
readonly logs=build/oidc/logs

finish() {
  local code=$?
  if [ "$code" != 0 ]; then
    compose/stack.sh --minimal logs --no-color --timestamps >"$logs" 2>&1 || true
    echo "The services' logs are in $logs."
  fi
  [ "${KEEP:-}" = 1 ] || compose/stack.sh --minimal --profile '*' down --volumes --remove-orphans >/dev/null 2>&1 || true
  exit "$code"
}

if ! docker info >/dev/null 2>&1; then
  echo "make test-oidc: the Docker engine does not respond; run make doctor." >&2
  # Locally that is not a failure of the code; in CI it is one.
  [ "${CI:-}" = true ] && exit 1
  exit 0
fi
mkdir -p "${logs%/*}"
.venv/bin/python -m tests.stack.provider_realm "$KEYCLOAK_REALM"
trap finish EXIT
compose/secrets.sh
compose/images.sh base java toolchain object-store spark trino keycloak
compose/certificates.sh
compose/passwords.sh
compose/stack.sh --minimal up --detach --wait --wait-timeout 600 trino
.venv/bin/pytest tests/stack/test_provider_login.py --durations=15 --junitxml=build/junit/oidc.xml "$@"
