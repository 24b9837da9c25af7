#!/usr/bin/env bash
# Starts Trino in the foreground with the mounted configuration.
set -euo pipefail
# A killed container leaves its pid file, and after the restart another process may have that id.
readonly pid_file=/tmp/trino.pid
# The official image has all connectors, and each takes memory: only the one for Delta is linked.
readonly plugins=/tmp/plugins
rm -rf "$pid_file" "$plugins"
mkdir "$plugins"
ln -s /usr/lib/trino/plugin/delta-lake "$plugins/"
exec /usr/lib/trino/bin/launcher run --etc-dir /etc/trino --pid-file "$pid_file" -D "plugin.dir=$plugins"
