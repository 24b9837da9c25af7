#!/usr/bin/env bash
# Asks Spark's master or worker what other services need of it: `spark-health master`, `spark-health worker`.
# The pages listen on all addresses. What drivers and executors talk to listens on the address that the container had when it
# started, which it has no longer when its network was cut and it got another one.
set -euo pipefail

page() { # ADDRESS
  curl -fs --max-time 4 --cacert /run/secrets/tls-ca --cert "/run/secrets/tls-spark-$role" "https://$1/json/" | tr -d ' \n'
}

listens() { # HOST PORT
  timeout 2 bash -c "exec 3<>/dev/tcp/$1/$2" 2>/dev/null || {
    echo "$1:$2 does not accept connections"
    exit 1
  }
}

readonly role="$1"
case "$role" in
  master)
    listens spark-master 7077
    page spark-master:8480 | grep -q '"status":"ALIVE"'
    ;;
  worker)
    # worker-<time>-<address>-<port>
    id="$(page 127.0.0.1:8481 | grep -o '"id":"worker-[^"]*"' | head -n 1 | cut -d '"' -f 4)"
    address="${id%-*}"
    listens "${address##*-}" "${id##*-}"
    # A master that does not respond is its own check's matter.
    workers="$(page spark-master:8480)" || exit 0
    sed 's/"id":"worker-/\n&/g' <<<"$workers" | grep -F "\"$id\"" | grep -q '"state":"ALIVE"' || {
      echo "the master does not know $id"
      exit 1
    }
    ;;
esac
