#!/usr/bin/env bash
# Trino's CLI, in the server's container: a small JVM, because both share its memory.
set -euo pipefail
options=(-Xmx96m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 --enable-native-access=ALL-UNNAMED)
# Without a terminal the CLI would warn that it found none.
[[ -t 0 && -t 1 ]] || options+=(-Dorg.jline.terminal.dumb=true)
exec "$JAVA_HOME/bin/java" "${options[@]}" -jar /usr/lib/trino/trino-cli.jar "$@"
