#!/usr/bin/env bash
# Prints what a PromQL query returns now: `promql.sh QUERY`. promtool runs in Prometheus' container, with its certificate.
set -euo pipefail

if [ "$#" -ne 1 ]; then
  echo "usage: promql.sh QUERY; quote the query, such as promql.sh 'topk(5, gamelake_table_bytes)'" >&2
  exit 2
fi
exec "$(dirname "$0")/stack.sh" exec -T prometheus \
  promtool query instant --http.config.file=/etc/prometheus/promtool.yml https://localhost:9090 "$1"
