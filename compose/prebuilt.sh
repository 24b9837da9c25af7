#!/usr/bin/env bash
# Moves the stack's images to and from a container registry, where an image is REGISTRY/gamelake-NAME:TAG.
# `prebuilt.sh push REGISTRY TAG`, for example `prebuilt.sh push ghcr.io/owner v0.1.0`, pushes those that were built here.
# `prebuilt.sh push REGISTRY TAG amd64 arm64` joins those that two machines have pushed as TAG-amd64 and TAG-arm64 under one
# tag, by docker buildx. Both write a line `DIGEST  NAME` for each to build/dist/images.sha256, by which a release signs them.
# `prebuilt.sh pull REGISTRY [TAG]` pulls those of a release, by default of this version, in place of building them.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=compose/read_env.sh
. compose/read_env.sh
read_env compose

readonly digests=build/dist/images.sha256
# Those that a container is run from: `toolchain` only builds others.
readonly names=(base java postgres object-store kafka registry spark trino prometheus alertmanager)

fail() {
  echo "prebuilt: $*" >&2
  exit 1
}

push_one() { # NAME TARGET TAG; prints the digest
  docker tag "gamelake/$1:$GAMELAKE_TAG" "$2:$3"
  docker push --quiet "$2:$3" >&2
  docker image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "$2:$3" | sed -n "s|^$2@sha256:||p"
}

join_one() { # TARGET TAG ARCHITECTURE...; prints the digest
  local target="$1" tag="$2"
  shift 2
  docker buildx imagetools create --tag "$target:$tag" "${@/#/$target:$tag-}" >&2
  docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$target:$tag" | sed 's/^sha256://'
}

push() { # REGISTRY TAG [ARCHITECTURE...]
  local registry="$1" tag="$2" name target digest
  shift 2
  mkdir -p build/dist
  : >"$digests"
  for name in "${names[@]}"; do
    target="$registry/gamelake-$name"
    if [ $# -gt 0 ]; then
      digest="$(join_one "$target" "$tag" "$@")"
    else
      digest="$(push_one "$name" "$target" "$tag")"
    fi
    [ -n "$digest" ] || fail "$target has no digest in the registry"
    printf '%s  %s\n' "$digest" "$target" >>"$digests"
  done
}

pull() { # REGISTRY TAG
  local name image started
  # All, before one of them replaces an image that was built here.
  for name in "${names[@]}"; do
    image="$1/gamelake-$name:$2" started=$SECONDS
    docker pull --quiet "$image" >/dev/null || fail "$image can't be pulled; without PREBUILT make up builds the images here"
    echo "prebuilt: $name: $((SECONDS - started)) s"
  done
  for name in "${names[@]}"; do
    docker tag "$1/gamelake-$name:$2" "gamelake/$name:$GAMELAKE_TAG"
  done
}

usage() {
  sed -n '2,7s/^# //p' "$0" >&2
  exit 2
}

case "${1:-} $#" in
  "push "[3-9]) [ -n "$2" ] && [ -n "$3" ] || usage ;;
  "pull "[23]) [ -n "$2" ] || usage ;;
  *) usage ;;
esac
command="$1"
shift
if [ "$command" = push ]; then push "$@"; else pull "$1" "${2:-v$GAMELAKE_TAG}"; fi
