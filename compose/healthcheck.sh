#!/bin/sh
# Runs a service's health check, `healthcheck COMMAND...`, and ends the service when it has failed for minutes: Docker restarts a
# process that ends, not one that is unhealthy. A service that has not been healthy since its start gets the time of a start.
# Docker runs this a second after the start, and a second after it ends. It sets the pace itself, as engines before 25 have one
# interval for all times: a service that starts is asked often, and is healthy as soon as it responds.
set -u
# Tests override these. Only as a container's own program the script may end process 1.
folder="${HEALTHCHECK_FOLDER:-/tmp}" process="${HEALTHCHECK_PROCESS:-}"
if [ "$0" = /usr/local/bin/healthcheck ]; then process=1; fi
# A check takes about ten seconds, so this is two minutes, and 15 minutes for a start.
pause="${HEALTHCHECK_PAUSE:-9}" most="${HEALTHCHECK_MOST:-12}" most_at_start="${HEALTHCHECK_MOST_AT_START:-90}"
# /tmp is empty at each start.
passed="$folder/healthcheck.passed" failed="$folder/healthcheck.failed"

passes() {
  if [ -f "$passed" ]; then
    sleep "$pause"
    "$@"
    return
  fi
  end=$(($(date +%s) + pause))
  until "$@"; do
    [ "$(date +%s)" -lt "$end" ] || return
    sleep 2
  done
}

if passes "$@"; then
  : >"$passed"
  rm -f "$failed"
  exit 0
fi
failures=$(($(cat "$failed" 2>/dev/null || echo 0) + 1))
echo "$failures" >"$failed"
[ -f "$passed" ] || most="$most_at_start"
[ "$failures" -ge "$most" ] || exit 1
# Into the service's log, where it has one.
echo "healthcheck: failed $failures times: ending the process" | tee "/proc/$process/fd/2" 2>/dev/null
kill -TERM "${process:?}"
# What does not end by that is killed: all processes of the container but its init process, which then ends.
if [ "$process" = 1 ] && [ "$failures" -ge $((2 * most)) ]; then kill -KILL -1; fi
exit 1
