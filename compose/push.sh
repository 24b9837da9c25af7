#!/usr/bin/env bash
# Pushes the stack's images to a container registry: `push.sh REGISTRY TAG`, for example `push.sh ghcr.io/owner v0.1.0`.
# `push.sh REGISTRY TAG amd64 arm64` joins those that two machines have pushed as TAG-amd64 and TAG-arm64 under one tag, by
# docker buildx. Writes a line `DIGEST  NAME` for each to build/dist/images.sha256, by which the release workflow signs them.
set -euo pipefail
cd "$(dirname "$0")/.."
. compose/.env

if [ $# -lt 2 ] || [ -z "$1" ] || [ -z "$2" ]; then
  sed -n '2,4s/^# //p' "$0" >&2
  exit 2
fi
readonly registry="$1" tag="$2" digests=build/dist/images.sha256
shift 2
readonly architectures=("$@")
# Those that a container is run from: `toolchain` only builds others.
readonly names=(base java postgres object-store kafka registry spark trino prometheus alertmanager)

push() { # NAME TARGET; prints the digest
  docker tag "gamelake/$1:$GAMELAKE_TAG" "$2:$tag"
  docker push --quiet "$2:$tag" >&2
  docker image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "$2:$tag" | sed -n "s|^$2@sha256:||p"
}

join() { # TARGET; prints the digest
  docker buildx imagetools create --tag "$1:$tag" "${architectures[@]/#/$1:$tag-}" >&2
  docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$1:$tag" | sed 's/^sha256://'
}

mkdir -p build/dist
: >"$digests"
for name in "${names[@]}"; do
  target="$registry/gamelake-$name"
  if [ ${#architectures[@]} -gt 0 ]; then
    digest="$(join "$target")"
  else
    digest="$(push "$name" "$target")"
  fi
  [ -n "$digest" ] || {
    echo "push: $target has no digest in the registry" >&2
    exit 1
  }
  printf '%s  %s\n' "$digest" "$target" >>"$digests"
done
