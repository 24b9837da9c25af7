#!/usr/bin/env bash
# Trino's command line, beside the server: a small JVM, for both share the container's memory.
set -euo pipefail
options=(-Xmx96m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 --enable-native-access=ALL-UNNAMED)
# Where there is no terminal, it would look for one and warn that it found none.
[[ -t 0 && -t 1 ]] || options+=(-Dorg.jline.terminal.dumb=true)
exec "$JAVA_HOME/bin/java" "${options[@]}" -jar /usr/lib/trino/trino-cli.jar "$@"
