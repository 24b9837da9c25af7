#!/usr/bin/env bash
# Starts the registry with its database password from the secret's file, and with one user, who may change it; others read. With
# bash alone: the official image may have no other tools.
set -euo pipefail
password() { # FILE
  local name value
  while IFS='=' read -r name value || [ -n "$name" ]; do
    if [ "$name" = password ]; then echo "$value"; fi
  done <"$1"
}
APICURIO_DATASOURCE_PASSWORD="$(password /run/secrets/postgres-registry)"
QUARKUS_SECURITY_USERS_EMBEDDED_USERS_WRITER="$(password /run/secrets/registry-writer)"
export APICURIO_DATASOURCE_PASSWORD QUARKUS_SECURITY_USERS_EMBEDDED_USERS_WRITER
export QUARKUS_HTTP_AUTH_BASIC=true APICURIO_AUTH_ANONYMOUS_READ_ACCESS_ENABLED=true
export QUARKUS_SECURITY_USERS_EMBEDDED_PLAIN_TEXT=true QUARKUS_SECURITY_USERS_EMBEDDED_ROLES_WRITER=sr-admin
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
