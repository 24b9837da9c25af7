# shellcheck shell=bash
# Sourced by the other scripts: reads the stack's settings as compose does. What the caller has set counts, then a
# person's own compose/.env.override, then the project's compose/.env. Nothing of the files is run.
read_env() { # DIRECTORY
  local file name value
  for file in "$1/.env.override" "$1/.env"; do
    [ -f "$file" ] || continue
    while IFS='=' read -r name value || [ -n "$name" ]; do
      case "$name" in
        "" | *[!A-Z0-9_]*) continue ;;
      esac
      [ -n "${!name+set}" ] || export "$name=$value"
    done <"$file"
  done
}
