#!/usr/bin/env bash
# Starts Trino in the foreground with the configuration that is mounted.
set -euo pipefail
# A container that was killed leaves its process id behind, and another process has that id after the restart.
readonly pid_file=/tmp/trino.pid
rm -f "$pid_file"
exec /usr/lib/trino/bin/launcher run --etc-dir /etc/trino --pid-file "$pid_file"
