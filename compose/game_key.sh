#!/usr/bin/env bash
# Changes the games' keys under a running gateway, which reads them again within seconds. A secret is replaced in two
# steps, while a game's releases go over from one to the other: `game_key.sh add KEY` puts a second one beside the first,
# `game_key.sh retire KEY` takes the first away. `game_key.sh support GAME` makes a key that forgets the game's players
# and hands out what is kept of them. macOS still ships bash 3.2: no newer syntax here.
set -eu

readonly file="${SECRETS_DIRECTORY:-$(cd "$(dirname "$0")" && pwd)/secrets}/ingest-keys"

usage() {
  echo "usage: game_key.sh add KEY | retire KEY | support GAME (the keys' ids are in $file; no secret is shown)"
}

fail() {
  echo "gamelake: $1" >&2
  exit 1
}

random_text() {
  head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n'
}

# Into the file itself and not beside it: a container goes on seeing the file that it was started with.
write() { # CONTENT
  chmod u+w "$file"
  printf '%s\n' "$1" >"$file"
  chmod 0444 "$file"
}

secrets_of() { # KEY; as they stand between the brackets, with a comma between two
  sed -n "s/.*{id: $1, .*secrets: \\[\\([^]]*\\)\\].*/\\1/p" "$file"
}

replace() { # KEY SECRETS
  write "$(sed "/{id: $1, /s/secrets: \\[[^]]*\\]/secrets: [$2]/" "$file")"
}

add_secret() { # KEY SECRETS
  case "$2" in
    *,*) fail "$1 has two secrets already: retire the first one before another is added." ;;
  esac
  replace "$1" "$2, $(random_text)"
  echo "$1 has a second secret: release the game with it, then 'game_key.sh retire $1'."
}

retire_secret() { # KEY SECRETS
  case "$2" in
    *,*) ;;
    *) fail "$1 has one secret only: add the new one first." ;;
  esac
  replace "$1" "${2#*, }"
  echo "$1 has its new secret alone."
}

make_support_key() { # GAME
  grep -q "game: $1," "$file" || fail "$file has no key of the game $1."
  [ -z "$(secrets_of "$1-support")" ] || fail "$1 has a support key already, $1-support."
  write "$(cat "$file" && printf '  - {id: %s-support, role: support, game: %s, secrets: [%s]}' "$1" "$1" "$(random_text)")"
  echo "made the key $1-support: whoever looks after the players of $1 finds its secret in $file."
}

case "${2:-}" in
  "" | *[!A-Za-z0-9_-]*)
    usage >&2
    exit 1
    ;;
esac
[ -f "$file" ] || fail "$file is missing: run 'make up', which makes it."
case "$1" in
  support) make_support_key "$2" ;;
  add | retire)
    found="$(secrets_of "$2")"
    [ -n "$found" ] || fail "$file has no key $2."
    "$1_secret" "$2" "$found"
    ;;
  *)
    usage >&2
    exit 1
    ;;
esac
