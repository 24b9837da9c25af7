#!/usr/bin/env bash
# Runs the container's command. Where the secret of Spark's RPC or the certificate of Spark's pages is mounted, Spark gets a copy
# of its settings with it: a setting on the command line, or in the container's own settings, could be read by others.
set -euo pipefail
# Paths in the image; tests override them.
readonly secrets="${SPARK_SECRETS:-/run/secrets}" settings="${SPARK_SETTINGS:-/tmp/spark-settings}"
readonly secret="$secrets/spark-rpc" keys="$settings/pages.p12" password="$settings/pages.password"

certificate_of_pages() {
  local service
  for service in ingest-events spark-history spark-master spark-worker; do
    [ ! -f "$secrets/tls-$service" ] || echo "$secrets/tls-$service"
  done
}

rpc_settings() {
  printf '%s\n' "spark.authenticate true" "spark.authenticate.secret $(cat "$secret")" "spark.network.crypto.enabled true"
}

# The pages of drivers, of masters and workers, and of the history server: by HTTPS, 400 ports above their own one, which
# redirects to it. Java reads no PEM here.
page_settings() { # CERTIFICATE
  local namespace
  head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$password"
  openssl pkcs12 -export -in "$1" -inkey "$1" -out "$keys" -passout "file:$password"
  for namespace in ui standalone historyServer; do
    printf "spark.ssl.$namespace.%s\\n" "enabled true" "needClientAuth true" "trustStore $secrets/tls-ca-java" \
      "trustStoreType PKCS12" "keyStore $keys" "keyStoreType PKCS12" "keyStorePassword $(cat "$password")"
  done
  rm -f "$password"
}

certificate="$(certificate_of_pages)"
if [ -f "$secret" ] || [ -n "$certificate" ]; then
  (
    umask 077
    mkdir -p "$settings"
    cp "$SPARK_CONF_DIR"/* "$settings/"
    {
      echo
      [ ! -f "$secret" ] || rpc_settings
      [ -z "$certificate" ] || page_settings "$certificate"
    } >>"$settings/spark-defaults.conf"
  )
  export SPARK_CONF_DIR="$settings"
fi
exec "$@"
