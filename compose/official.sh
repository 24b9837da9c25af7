#!/usr/bin/env bash
# What `make up OFFICIAL=1` needs beside the images that it pulls: our image of Spark and the services, and the exporter of
# Kafka's figures, which Kafka's own image lacks.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=compose/read_env.sh
. compose/read_env.sh
read_env compose
readonly jar=build/official/jmx_prometheus_javaagent.jar

fetch_exporter() {
  [ ! -s "$jar" ] || return 0
  mkdir -p "${jar%/*}"
  # In the image that the others are built with, so that the machine needs no Maven.
  docker run --rm "gamelake/toolchain:$GAMELAKE_TAG" bash -c "
    mvn dependency:copy -Dartifact=io.prometheus.jmx:jmx_prometheus_javaagent:$JMX_EXPORTER_VERSION \
      -DoutputDirectory=/tmp -Dmdep.stripVersion=true >&2 && cat /tmp/${jar##*/}" >"$jar.unfinished"
  chmod 0644 "$jar.unfinished"
  mv "$jar.unfinished" "$jar"
}

compose/images.sh base java toolchain spark
fetch_exporter
