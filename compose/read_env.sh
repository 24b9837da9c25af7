# shellcheck shell=bash
# Sourced by the other scripts, and run by tools/stack.py: the one reader of the stack's settings. What the caller has set
# counts, then a person's own compose/.env.override, then the project's compose/.env. docker compose gets the values as
# variables. A line is NAME=value, the value a plain text or one in quotes. Nothing is run or expanded: a line that a shell
# or docker compose would read in another way is an error.
# Only what bash itself has, and no newer syntax than 3.2, which macOS still ships.
read_env() { # DIRECTORY
  local file line number name value
  read_env_names=""
  for file in "$1/.env.override" "$1/.env"; do
    [ -f "$file" ] || continue
    number=0
    while IFS= read -r line || [ -n "$line" ]; do
      number=$((number + 1))
      # Blanks at the ends, and the carriage return of Windows' editors.
      line="${line#"${line%%[![:space:]]*}"}"
      line="${line%"${line##*[![:space:]]}"}"
      case "$line" in
        "" | "#"*) continue ;;
        *=*) ;;
        *) read_env_fail "$file" "$number" ;;
      esac
      name="${line%%=*}" value="${line#*=}"
      case "$name" in
        "" | [0-9]* | *[!A-Z0-9_]*) read_env_fail "$file" "$number" ;;
      esac
      read_env_value "$value" || read_env_fail "$file" "$number"
      read_env_names="$read_env_names $name"
      [ -n "${!name+set}" ] || export "$name=$read_env_found"
    done <"$file"
  done
}

read_env_value() { # TEXT; sets read_env_found
  read_env_found="$1"
  case "$1" in
    "'"*"'") read_env_found="${1#?}" && read_env_found="${read_env_found%?}" ;;
    '"'*'"') read_env_found="${1#?}" && read_env_found="${read_env_found%?}" ;;
    *" #"*) return 1 ;;
  esac
  case "$read_env_found" in
    *[\'\"\$\`\\]*) return 1 ;;
  esac
}

read_env_fail() { # FILE LINE
  echo "gamelake: $1:$2: a line is NAME=value; the value may stand in quotes, and has no quotes, \$, \` or \\ in it, and no comment after it." >&2
  exit 1
}
