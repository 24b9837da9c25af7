#!/usr/bin/env bash
# Starts the registry with its database password from the secret's file.
set -euo pipefail
APICURIO_DATASOURCE_PASSWORD="$(</run/secrets/postgres-password)"
export APICURIO_DATASOURCE_PASSWORD
# shellcheck disable=SC2086 # several options in one variable
exec "${JAVA_HOME:+$JAVA_HOME/bin/}java" ${JAVA_OPTIONS:-} -jar "${REGISTRY_JAR:-/opt/registry/quarkus-run.jar}"
