#!/usr/bin/env bash
# Shows the progress of a command that prints nothing for minutes: `exec 9> >(progress.sh TEXT FOLDER...) && COMMAND`. Every ten
# seconds it writes to standard error how long the command has run and how much its folders have grown. It ends with the
# command, because only the command's processes hold its input open. macOS still ships bash 3.2: no newer syntax here.
set -eu

readonly text="$1" every="${PROGRESS_SECONDS:-10}" wait=2
shift

megabytes() { # FOLDER...
  local folder sum=0 size
  for folder in "$@"; do
    size="$(du -sm "$folder" 2>/dev/null | cut -f1)" || size=0
    sum=$((sum + ${size:-0}))
  done
  echo "$sum"
}

before="$(megabytes "$@")"
readonly before
next=$every
while :; do
  began=$SECONDS
  # Its exit code is the same at the end of the input and after the time, in old versions of bash.
  read -r -t "$wait" || [ $((SECONDS - began)) -ge "$wait" ] || exit 0
  if [ "$SECONDS" -ge "$next" ]; then
    next=$((SECONDS + every))
    echo "$text: $SECONDS s, $(($(megabytes "$@") - before)) MB so far" >&2
  fi
done
