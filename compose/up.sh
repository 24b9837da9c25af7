#!/usr/bin/env bash
# Starts the stack, or updates a running one: `up.sh [--minimal]`, with --minimal without the overlays.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=compose/read_env.sh
. compose/read_env.sh
read_env compose
compose/project.sh
compose/doctor.sh ${1:+"$1"}
compose/secrets.sh
if [ "${OFFICIAL:-}" = 1 ]; then
  compose/official.sh
elif [ -n "${PREBUILT:-}" ]; then
  compose/prebuilt.sh pull "$PREBUILT"
else
  compose/images.sh
fi
[ "${OIDC:-0}" != keycloak ] || compose/images.sh keycloak
[ "${BI:-0}" != 1 ] || compose/images.sh superset
compose/certificates.sh
compose/passwords.sh
# What the portal shows where it is there; Docker would make these folders as root.
mkdir -p build/docs/site build/portal && mkdir -p -m 700 build/switchboard && mkdir -p -m 755 build/switchboard/socket
compose/stack.sh ${1:+"$1"} up --detach --remove-orphans --wait --wait-timeout 900 --scale "spark-worker=${WORKERS:-1}"
# Rules and scrape targets are files of the repository, whose changes recreate no container.
# (`docker kill` would do it, too, and end the restart policy of the container in some versions of Docker.)
if [ "${1:-}" != --minimal ]; then
  for service in prometheus alertmanager; do compose/stack.sh exec --no-TTY "$service" sh -c "kill -HUP 1"; done
fi
compose/urls.sh
