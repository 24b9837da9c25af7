#!/usr/bin/env bash
# Starts the registry with its database password from the secret's file. With bash alone: the
# official image may have no other tools.
set -euo pipefail
password() {
  local name value
  while IFS='=' read -r name value || [ -n "$name" ]; do
    if [ "$name" = password ]; then echo "$value"; fi
  done </run/secrets/postgres-registry
}
APICURIO_DATASOURCE_PASSWORD="$(password)"
export APICURIO_DATASOURCE_PASSWORD
# shellcheck disable=SC2086 # several options in one variable
exec "${JAVA_HOME:+$JAVA_HOME/bin/}java" ${JAVA_OPTIONS:-} -jar "${REGISTRY_JAR:-/opt/registry/quarkus-run.jar}"
