#!/usr/bin/env bash
# docker compose over the files of the stack: `stack.sh [--minimal] COMMAND...`; OFFICIAL=1, here or in .env.override,
# takes the projects' own images.
# Grafana is on no package registry: where its image is not there and can't be pulled, it is left out.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=compose/read_env.sh
. ./read_env.sh
read_env .

readonly remembered=../build/stack-without-grafana

has_grafana() {
  local image="$GRAFANA_IMAGE"
  docker image inspect "$image" >/dev/null 2>&1 && return
  # Asked once: a registry that does not answer is waited for at every command otherwise.
  [ ! -f "$remembered" ] || return 1
  docker pull --quiet "$image" >/dev/null 2>&1 && return
  mkdir -p "${remembered%/*}" && touch "$remembered"
  echo "stack: Grafana is left out, since no container registry answers; Prometheus' own pages show the same figures." >&2
  return 1
}

files=(--file compose.yaml)
official=(--file compose.official.yaml)
if [ "${1:-}" = "--minimal" ]; then
  shift
else
  files+=(--file compose.serving.yaml --file compose.observability.yaml --file compose.quality.yaml)
  ! has_grafana || files+=(--file compose.grafana.yaml)
  official+=(--file compose.official.observability.yaml)
fi
environment=(--env-file .env)
if [ "${OFFICIAL:-}" = 1 ]; then
  files+=("${official[@]}")
  environment+=(--env-file .env.official)
fi
[ ! -f .env.override ] || environment+=(--env-file .env.override)
exec docker compose "${environment[@]}" "${files[@]}" "$@"
