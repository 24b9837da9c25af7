#!/usr/bin/env bash
# Hashes the passwords of Trino's users, which are in compose/secrets/trino-<user>: Trino gets the hashes and no password. It
# does so once, and again when a password is new. The images must be there: a container hashes.
# macOS still ships bash 3.2: no newer syntax here.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=compose/read_env.sh
. ./read_env.sh
read_env .

readonly hashes=secrets/trino-password-hashes unfinished=secrets/.trino-password-hashes.unfinished

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

! is_current || exit 0
rm -f "$unfinished"
credentials | docker run --rm --interactive --network none --read-only --cap-drop ALL --security-opt no-new-privileges \
  "gamelake/spark:$GAMELAKE_TAG" python -m services.provision.passwords >"$unfinished"
# Trino reads it with another user id; the directory's mode excludes other users of this machine.
chmod 0444 "$unfinished"
mv -f "$unfinished" "$hashes"
echo "passwords: hashed those of Trino's users"
