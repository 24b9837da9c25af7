#!/usr/bin/env bash
# Runs the container's command. Where the secret of Spark's RPC or the certificate of Spark's pages is mounted, Spark gets a copy
# of its settings with it: a setting on the command line, or in the container's own settings, could be read by others.
# The command `executor` is that of Spark's scheduler for Kubernetes, which describes the executor in the environment.
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

# Source: Spark, resource-managers/kubernetes/docker/src/main/dockerfiles/spark/entrypoint.sh.
run_executor() {
  local options=() number=0 name="SPARK_JAVA_OPT_0"
  while [ -n "${!name+set}" ]; do
    options+=("${!name}")
    number=$((number + 1)) name="SPARK_JAVA_OPT_$((number))"
  done
  exec "${JAVA_HOME:+$JAVA_HOME/bin/}java" ${options[@]+"${options[@]}"} \
    "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" -cp "$SPARK_HOME/conf/:$SPARK_HOME/jars/*${SPARK_CLASSPATH:+:$SPARK_CLASSPATH}" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
    --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
    --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
}

# A folder of settings on the class path would keep the JVMs from mapping the archive of Spark's classes: each file is named by an
# option instead, and the folder is not. Executors inherit the options of a worker. An archive that were mapped at a random
# address would be copied to memory of the process, 220 MB, for the addresses in it.
readonly folder="$SPARK_CONF_DIR"
unset SPARK_CONF_DIR
readonly archive="-XX:SharedArchiveFile=$SPARK_HOME/jars.jsa -XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0 -Xlog:disable"
export JDK_JAVA_OPTIONS="$archive ${JDK_JAVA_OPTIONS:-}"
logging="$folder/log4j2.properties"
[ -f "$logging" ] || logging=/opt/gamelake/log4j2.properties # executors of Kubernetes have the image's
JDK_JAVA_OPTIONS+=" -Dlog4j2.configurationFile=$logging"
[ ! -f "$folder/metrics.properties" ] || JDK_JAVA_OPTIONS+=" -Dspark.metrics.conf=$folder/metrics.properties"
[ "${1:-}" != executor ] || run_executor

defaults="$folder/spark-defaults.conf"
certificate="$(certificate_of_pages)"
if [ -f "$secret" ] || [ -n "$certificate" ]; then
  (
    umask 077
    mkdir -p "$settings"
    {
      cat "$defaults"
      echo
      [ ! -f "$secret" ] || rpc_settings
      [ -z "$certificate" ] || page_settings "$certificate"
    } >"$settings/spark-defaults.conf"
  )
  defaults="$settings/spark-defaults.conf"
fi
if [ "${1:-}" = spark-class ]; then
  exec "$@" --properties-file "$defaults"
fi
export PYSPARK_SUBMIT_ARGS="--properties-file $defaults pyspark-shell"
exec "$@"
