#!/usr/bin/env bash
# Derives from secrets what a service gets in their place, once, and again when a secret is new: the hashes of the passwords of Trino's
# users, which are in compose/secrets/trino-<user>, and the token of the object store's user `metrics` for Prometheus. The images must be
# there: a container derives.
# macOS still ships bash 3.2: no newer syntax here.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=compose/read_env.sh
. ./read_env.sh
read_env .

readonly hashes=secrets/trino-password-hashes key=secrets/object-store-metrics token=secrets/object-store-metrics-token

files() { # those with a user's password, one per line
  find secrets -name 'trino-*' ! -name trino-internal ! -name trino-password-hashes "$@"
}

credentials() {
  local file
  files | sort | while read -r file; do
    case "$file" in
      */trino-prometheus) printf 'username=prometheus\npassword=%s\n' "$(cat "$file")" ;;
      *) cat "$file" ;;
    esac
  done
}

is_current() { # no password is newer, and no user is gone
  [ -s "$hashes" ] && [ -z "$(files -newer "$hashes")" ] && [ "$(files | wc -l)" -eq "$(wc -l <"$hashes")" ]
}

derive() { # FILE MODULE, the secrets on standard input
  local unfinished="secrets/.${1##*/}.unfinished"
  rm -f "$unfinished"
  docker run --rm --interactive --network none --read-only --cap-drop ALL --security-opt no-new-privileges \
    "gamelake/spark:$GAMELAKE_TAG" python -m "services.provision.$2" >"$unfinished"
  # Containers read it with another user id; the directory's mode excludes other users of this machine.
  chmod 0444 "$unfinished"
  mv -f "$unfinished" "$1"
}

if ! is_current; then
  credentials | derive "$hashes" passwords
  echo "passwords: hashed those of Trino's users"
fi
if [ ! -s "$token" ] || [ "$key" -nt "$token" ]; then
  derive "$token" metrics_token <"$key"
  echo "passwords: signed the token for the object store's metrics"
fi
