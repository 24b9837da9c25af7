#!/usr/bin/env bash
# Brings up a Kubernetes cluster of one node, installs the chart with the trial's services, runs the tests that need it, and takes
# the cluster down: `run.sh [PYTEST ARGUMENT...]`. HELM is Helm's path. KEEP=1 leaves the cluster running; the logs of all pods are
# kept when a test fails.
set -euo pipefail
cd "$(dirname "$0")/../.."

export HELM="${HELM:?}" GAMELAKE_TEST_NAMESPACE=games GAMELAKE_TEST_CHART="$PWD/build/kubernetes-chart/gamelake"
# Not in build/, whose path may be too long for sockets.
readonly folder="${GAMELAKE_TEST_CLUSTER:-/var/lib/gamelake-test-cluster}" logs=build/kubernetes-logs
readonly images=(postgres kafka registry object-store spark)
readonly patience=20m
export KUBECONFIG="$folder/kubeconfig" PATH="$PATH:${KUBERNETES_PROGRAMS:-$PWD/build/kubernetes}"

in_namespace() {
  kubectl --namespace "$GAMELAKE_TEST_NAMESPACE" "$@"
}

keep_logs() {
  local pod
  rm -rf "$logs"
  mkdir -p "$logs"
  in_namespace get pods --output wide >"$logs/pods" 2>&1 || true
  in_namespace describe pods >"$logs/descriptions" 2>&1 || true
  in_namespace get events --sort-by .lastTimestamp >"$logs/events" 2>&1 || true
  for pod in $(in_namespace get pods --output name 2>/dev/null); do
    in_namespace logs "$pod" --timestamps >"$logs/${pod#pod/}.log" 2>&1 || true
    in_namespace logs "$pod" --timestamps --previous >"$logs/${pod#pod/}.previous.log" 2>/dev/null || true
  done
  cp -R "$folder/log" "$logs/cluster" 2>/dev/null || true
  find "$logs" -empty -delete
  echo "The pods' logs are in $logs."
}

finish() {
  local code=$?
  [ "$code" = 0 ] || keep_logs
  if [ "${KEEP:-}" = 1 ]; then
    echo "The cluster continues: export KUBECONFIG=$KUBECONFIG; deploy/kubernetes/cluster.sh down $folder ends it."
  else
    deploy/kubernetes/cluster.sh down "$folder" || true
  fi
  exit "$code"
}

install_chart() { # TAG
  kubectl create namespace "$GAMELAKE_TEST_NAMESPACE"
  kubectl label namespace "$GAMELAKE_TEST_NAMESPACE" pod-security.kubernetes.io/enforce=restricted
  in_namespace create secret generic gamelake-secrets --from-file=compose/secrets --from-file=ingest-keys=compose/secrets/ingest-keys/keys.yaml >/dev/null
  "$HELM" install gamelake "$GAMELAKE_TEST_CHART" --namespace "$GAMELAKE_TEST_NAMESPACE" --values deploy/helm/values/trial.yaml \
    --values tests/kubernetes/values.yaml --set "image.tag=$1" --wait --timeout "$patience"
}

if ! docker info >/dev/null 2>&1; then
  echo "make test-kubernetes: the Docker engine does not respond; run make doctor." >&2
  # Locally that is not a failure of the code; in CI it is one.
  [ "${CI:-}" = true ] && exit 1
  exit 0
fi
tag="$(. compose/read_env.sh && read_env compose && echo "$GAMELAKE_TAG")"
compose/secrets.sh
compose/images.sh base java toolchain "${images[@]}"
deploy/chart.sh "$(dirname "$GAMELAKE_TEST_CHART")"
tagged=("${images[@]/#/gamelake/}")
trap finish EXIT
deploy/kubernetes/cluster.sh up "$folder" "${tagged[@]/%/:$tag}"
install_chart "$tag"
.venv/bin/pytest tests/kubernetes --durations=15 --junitxml=build/junit/kubernetes.xml "$@"
