#!/usr/bin/env bash
# Runs the container's command. Where the secret of Spark's RPC is mounted, Spark gets a copy of its settings with it: a setting
# on the command line, or in the container's own settings, could be read by others.
set -euo pipefail
readonly secret=/run/secrets/spark-rpc settings=/tmp/spark-settings
if [ -f "$secret" ]; then
  (
    umask 077
    mkdir -p "$settings"
    cp "$SPARK_CONF_DIR"/* "$settings/"
    printf '\nspark.authenticate true\nspark.authenticate.secret %s\nspark.network.crypto.enabled true\n' "$(cat "$secret")" \
      >>"$settings/spark-defaults.conf"
  )
  export SPARK_CONF_DIR="$settings"
fi
exec "$@"
