#!/usr/bin/env bash
# Pushes the stack's images to a container registry: `push.sh REGISTRY TAG`, for example `push.sh ghcr.io/owner v0.1.0`.
# Writes a line `DIGEST  NAME` for each to build/dist/images.sha256, by which the release workflow signs them.
set -euo pipefail
cd "$(dirname "$0")/.."
. compose/.env

if [ $# != 2 ] || [ -z "$1" ] || [ -z "$2" ]; then
  sed -n '2,3s/^# //p' "$0" >&2
  exit 2
fi
readonly registry="$1" tag="$2" digests=build/dist/images.sha256
# Those that a container is run from: `toolchain` only builds others.
readonly names=(base java postgres object-store kafka registry spark trino prometheus alertmanager)

mkdir -p build/dist
: >"$digests"
for name in "${names[@]}"; do
  target="$registry/gamelake-$name"
  docker tag "gamelake/$name:$GAMELAKE_TAG" "$target:$tag"
  docker push --quiet "$target:$tag"
  digest="$(docker image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "$target:$tag" | sed -n "s|^$target@sha256:||p")"
  [ -n "$digest" ] || {
    echo "push: $target has no digest in the registry" >&2
    exit 1
  }
  printf '%s  %s\n' "$digest" "$target" >>"$digests"
done
