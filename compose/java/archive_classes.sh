#!/usr/bin/env bash
# Starts a Java service, waits until a probe succeeds, stops it, and archives the classes that it loaded:
# `archive_classes.sh FILE PROBE COMMAND...`. Later JVMs with the same class path map the archive instead of parsing classes.
set -euo pipefail
readonly archive="$1" probe="$2"
shift 2

export JDK_JAVA_OPTIONS="-XX:ArchiveClassesAtExit=$archive -Xlog:disable"
"$@" &
readonly service="$!"
until bash -c "$probe" >/dev/null 2>&1; do
  if ! kill -0 "$service" 2>/dev/null; then
    echo "archive_classes: the service ended before the probe succeeded" >&2
    exit 1
  fi
  sleep 0.2
done
kill "$service"
wait "$service" || true
[ -s "$archive" ] || {
  echo "archive_classes: the service ended without the archive $archive" >&2
  exit 1
}
