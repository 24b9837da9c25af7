#!/usr/bin/env bash
# Starts Trino in the foreground with the configuration that is mounted.
set -euo pipefail
# A container that was killed leaves its process id behind, and another process has that id after the restart.
readonly pid_file=/tmp/trino.pid
# Trino's own image has all connectors, and each would take memory: only the one that the lakehouse needs is shown.
readonly plugins=/tmp/plugins
rm -rf "$pid_file" "$plugins"
mkdir "$plugins"
ln -s /usr/lib/trino/plugin/delta-lake "$plugins/"
exec /usr/lib/trino/bin/launcher run --etc-dir /etc/trino --pid-file "$pid_file" -D "plugin.dir=$plugins"
