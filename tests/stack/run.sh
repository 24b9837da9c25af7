#!/usr/bin/env bash
# Brings up a stack of the tests' own, runs the tests that need one, and removes it: `run.sh [PYTEST ARGUMENT...]`.
# Tests that need an object store and nothing else of the stack have a store of their own, and run meanwhile; with arguments
# they run after the others. KEEP=1 leaves the stack running, to inspect or to run again; the logs of all services are kept
# when a test fails. A container that the kernel ends for its memory is a failure, though it started again in time for the
# tests.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Volumes of their own: a test may lose no other data.
export COMPOSE_PROJECT_NAME="${COMPOSE_PROJECT_NAME:-gamelake-test}"
readonly logs=build/stack-logs second_log=build/object-store-tests.log killed_for_memory=build/killed-for-memory
readonly tests=(.venv/bin/pytest tests/stack --durations=15)
readonly second_store="$COMPOSE_PROJECT_NAME-second-object-store"
second_tests="" watch=""

key() { # NAME
  sed -n "s/^$1 *= *//p" compose/secrets/object-store-root
}

# With the keys of the stack's store, and without its notifications to Kafka.
start_second_store() {
  local address tag
  # shellcheck source=compose/read_env.sh
  tag="$(. compose/read_env.sh && read_env compose && echo "$GAMELAKE_TAG")"
  MINIO_ROOT_USER="$(key aws_access_key_id)" MINIO_ROOT_PASSWORD="$(key aws_secret_access_key)" \
    docker run --detach --rm --name "$second_store" --publish 127.0.0.1::9000 --env MINIO_ROOT_USER --env MINIO_ROOT_PASSWORD \
    --entrypoint minio "gamelake/object-store:$tag" server /data --address :9000 >/dev/null
  address="$(docker port "$second_store" 9000/tcp)"
  export GAMELAKE_TEST_S3_ENDPOINT="http://$address"
  curl --fail --silent --retry 30 --retry-delay 1 --retry-all-errors "http://$address/minio/health/live"
}

tests_of_the_store_alone() { # [PYTEST ARGUMENT...]
  start_second_store && exec "${tests[@]}" --junitxml=build/junit/object-store.xml -m object_store "$@"
}

watch_memory() {
  docker events --filter event=oom --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME" \
    --format '{{.Actor.Attributes.name}}' >"$killed_for_memory" &
  watch=$!
}

finish() {
  local code=$?
  [ -z "$second_tests" ] || kill "$second_tests" 2>/dev/null || true
  docker rm --force "$second_store" >/dev/null 2>&1 || true
  [ -z "$watch" ] || kill "$watch" 2>/dev/null || true
  if [ -s "$killed_for_memory" ]; then
    echo "The kernel ended a process in these containers, whose memory was at its limit (compose/.env):" >&2
    sort "$killed_for_memory" | uniq -c >&2
    code=1
  fi
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
  # Locally that is not a failure of the code; in CI it is one.
  [ "${CI:-}" = true ] && exit 1
  exit 0
fi
mkdir -p build
: >"$killed_for_memory"
trap finish EXIT
watch_memory
compose/up.sh
if [ $# -gt 0 ]; then
  first=0 second=0
  "${tests[@]}" --junitxml=build/junit/stack.xml -m "not object_store" "$@" || first=$?
  (tests_of_the_store_alone "$@") || second=$?
  # Pytest exits with 5 if the arguments select no test: in one of the two they may, in both that is a mistake.
  [ "$first" != 5 ] || exit "$second"
  [ "$second" != 5 ] || exit "$first"
  exit "$((first > second ? first : second))"
fi
failed=0
tests_of_the_store_alone >"$second_log" 2>&1 &
second_tests=$!
"${tests[@]}" --junitxml=build/junit/stack.xml -m "not object_store" || failed=$?
wait "$second_tests" || failed=$?
second_tests=""
cat "$second_log"
exit "$failed"
