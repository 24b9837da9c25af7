#!/usr/bin/env bash
# Changes the games' keys of a running gateway, which reloads them within seconds. Replace a secret in two steps, while the
# game's releases migrate: `game_key.sh add KEY` adds a second secret, `game_key.sh retire KEY` removes the first one.
# `game_key.sh support GAME` creates a key that may erase and export the data of the game's players. macOS still ships bash 3.2: no newer syntax here.
set -eu

readonly file="${SECRETS_DIRECTORY:-$(cd "$(dirname "$0")" && pwd)/secrets}/ingest-keys/keys.yaml"

usage() {
  echo "usage: game_key.sh add KEY | retire KEY | support GAME (the keys' ids are in $file; secrets are never printed)"
}

fail() {
  echo "gamelake: $1" >&2
  exit 1
}

random_text() {
  head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n'
}

# Written to a temporary file and renamed: no key is lost when the disk is full or this script is killed, and the gateway
# reads no half of the file. Containers mount the folder, and so see the new file.
write() { # CONTENT
  local unfinished="$file.unfinished"
  rm -f "$unfinished"
  printf '%s\n' "$1" >"$unfinished" || fail "$unfinished can't be written; the keys are as they were."
  chmod 0444 "$unfinished"
  mv -f "$unfinished" "$file"
}

secrets_of() { # KEY; the text between the brackets, with a comma between two secrets
  sed -n "s/.*{id: $1, .*secrets: \\[\\([^]]*\\)\\].*/\\1/p" "$file"
}

replace() { # KEY SECRETS
  local content
  content="$(sed "/{id: $1, /s/secrets: \\[[^]]*\\]/secrets: [$2]/" "$file")"
  write "$content"
}

add_secret() { # KEY SECRETS
  case "$2" in
    *,*) fail "$1 already has two secrets: retire the first one before you add another." ;;
  esac
  replace "$1" "$2, $(random_text)"
  echo "$1 has a second secret: release the game with it, then 'game_key.sh retire $1'."
}

retire_secret() { # KEY SECRETS
  case "$2" in
    *,*) ;;
    *) fail "$1 has only one secret: add the new one first." ;;
  esac
  replace "$1" "${2#*, }"
  echo "$1 has only its new secret."
}

make_support_key() { # GAME
  grep -q "game: $1," "$file" || fail "$file has no key of the game $1."
  [ -z "$(secrets_of "$1-support")" ] || fail "$1 already has a support key, $1-support."
  local content
  content="$(cat "$file" && printf '  - {id: %s-support, role: support, game: %s, secrets: [%s]}' "$1" "$1" "$(random_text)")"
  write "$content"
  echo "made the key $1-support: give its secret in $file to the support team of $1."
}

case "${2:-}" in
  "" | *[!A-Za-z0-9_-]*)
    usage >&2
    exit 1
    ;;
esac
[ -f "$file" ] || fail "$file is missing: run 'make up', which creates it."
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
