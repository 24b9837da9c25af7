#!/usr/bin/env bash
# Prepares `make up OFFICIAL=1`: builds our image of Spark and the services, and downloads the JMX exporter, which Kafka's
# official image lacks.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=compose/read_env.sh
. compose/read_env.sh
read_env compose
readonly jar=build/official/jmx_prometheus_javaagent.jar

fetch_exporter() {
  [ ! -s "$jar" ] || return 0
  mkdir -p "${jar%/*}"
  # In the toolchain image, so that the machine needs no Maven.
  docker run --rm "gamelake/toolchain:$GAMELAKE_TAG" bash -c "
    mvn dependency:copy -Dartifact=io.prometheus.jmx:jmx_prometheus_javaagent:$JMX_EXPORTER_VERSION \
      -DoutputDirectory=/tmp -Dmdep.stripVersion=true >&2 && cat /tmp/${jar##*/}" >"$jar.unfinished"
  chmod 0644 "$jar.unfinished"
  mv "$jar.unfinished" "$jar"
}

compose/images.sh base java toolchain spark
fetch_exporter
