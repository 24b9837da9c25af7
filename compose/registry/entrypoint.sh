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
if [ "${TLS:-1}" = 0 ]; then
  export QUARKUS_HTTP_PORT=8080
else
  export QUARKUS_HTTP_INSECURE_REQUESTS=disabled QUARKUS_HTTP_SSL_PORT=8080
  export QUARKUS_HTTP_SSL_CERTIFICATE_FILES=/run/secrets/tls-registry QUARKUS_HTTP_SSL_CERTIFICATE_KEY_FILES=/run/secrets/tls-registry
  export QUARKUS_MANAGEMENT_SSL_CERTIFICATE_FILES=/run/secrets/tls-registry
  export QUARKUS_MANAGEMENT_SSL_CERTIFICATE_KEY_FILES=/run/secrets/tls-registry
fi
# shellcheck disable=SC2086 # several options in one variable
exec "${JAVA_HOME:+$JAVA_HOME/bin/}java" ${JAVA_OPTIONS:-} -jar "${REGISTRY_JAR:-/opt/registry/quarkus-run.jar}"
