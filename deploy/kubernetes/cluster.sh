#!/usr/bin/env bash
# A Kubernetes cluster of one node on this machine, for `make test-kubernetes`: `cluster.sh up FOLDER IMAGE...` starts it with images
# of the Docker engine, `cluster.sh down FOLDER` ends it and removes what it has made. FOLDER/kubeconfig is its configuration for
# kubectl and Helm. It is made by kind or k3d where one is installed, else of processes (processes.sh, which needs root and
# Debian); CLUSTER=<kind, k3d, processes> chooses.
set -euo pipefail
readonly verb="${1:-}" folder="${2:-}" name=gamelake-test ready_seconds=180
here="$(cd "$(dirname "$0")" && pwd)"

fail() {
  echo "cluster: $*" >&2
  exit 1
}

installed() { # what makes the cluster
  local each
  for each in kind k3d; do
    ! command -v "$each" >/dev/null || {
      echo "$each"
      return
    }
  done
  echo processes
}

up() { # IMAGE...
  local kubeconfig="$folder/kubeconfig" maker="${CLUSTER:-$(installed)}"
  case "$maker" in
    kind | k3d | processes) ;;
    *) fail "CLUSTER=$maker is none of kind, k3d, processes" ;;
  esac
  # What an earlier run may have left.
  [ ! -e "$folder" ] || "$0" down "$folder"
  mkdir -p "$folder"
  echo "$maker" >"$folder/maker"
  case "$maker" in
    kind)
      kind create cluster --name "$name" --kubeconfig "$kubeconfig" --wait "${ready_seconds}s"
      kind load docker-image --name "$name" "$@"
      ;;
    k3d)
      k3d cluster create "$name" --kubeconfig-update-default=false --wait --timeout "${ready_seconds}s"
      (umask 077 && k3d kubeconfig get "$name" >"$kubeconfig")
      k3d image import --cluster "$name" "$@"
      ;;
    processes)
      "$here/programs.sh"
      "$here/processes.sh" up "$folder" "$@"
      ;;
  esac
}

down() {
  case "$(cat "$folder/maker" 2>/dev/null)" in
    kind) kind delete cluster --name "$name" ;;
    k3d) k3d cluster delete "$name" ;;
    processes) "$here/processes.sh" down "$folder" ;;
    *) fail "$folder/maker does not say what made the cluster" ;;
  esac
  rm -rf "$folder"
}

[ -n "$folder" ] || fail "usage: cluster.sh up FOLDER IMAGE... | down FOLDER"
case "$verb" in
  up) up "${@:3}" ;;
  down) down ;;
  *) fail "usage: cluster.sh up FOLDER IMAGE... | down FOLDER" ;;
esac
