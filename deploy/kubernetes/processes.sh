#!/usr/bin/env bash
# A Kubernetes cluster of one node, made of processes of root: the programs of programs.sh, containerd, runc and CNI plugins.
# `processes.sh up FOLDER IMAGE...` starts it with images of the Docker engine, `processes.sh down FOLDER` ends it and removes
# FOLDER. Its addresses are on an interface of its own, which other machines don't reach. It is for tests alone: its one token may
# do anything.
set -euo pipefail
readonly verb="${1:?usage: processes.sh up FOLDER IMAGE... | down FOLDER}" folder="${2:?usage: processes.sh up|down FOLDER}"
here="$(cd "$(dirname "$0")/../.." && pwd)"
readonly programs="${KUBERNETES_PROGRAMS:-$here/build/kubernetes}"
export PATH="$PATH:$programs" # kubectl, where the machine has none
readonly interface=gamelake0 node=10.243.0.1 pods=10.244.0.0/24 services=10.245.0.0/24 api_service=10.245.0.1 bridge=gamelake1
readonly gateway=10.244.0.1 token_file="$folder/tokens.csv" kubeconfig="$folder/kubeconfig" socket="$folder/containerd.sock"
export KUBECONFIG="$kubeconfig"

say() {
  echo "cluster: $*" >&2
}

fail() {
  say "$*"
  exit 1
}

start() { # NAME COMMAND...
  local name="$1"
  shift
  setsid "$@" >"$folder/log/$name" 2>&1 </dev/null &
  echo $! >"$folder/pid/$name"
}

wait_until() { # SECONDS WHAT COMMAND...
  local until=$((SECONDS + $1)) what="$2"
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$until" ] || fail "$what did not happen in time; logs are in $folder/log"
    sleep 0.5
  done
}

containerd_settings() {
  cat <<EOT
version = 2
root = "$folder/containerd"
state = "$folder/containerd.state"
[grpc]
  address = "$socket"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/gamelake/pause:kubernetes"
  # A container of root without CAP_SYS_RESOURCE, which this may run in, can't protect a process from being killed.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${CNI_PLUGINS:-/usr/lib/cni}"
    conf_dir = "$folder/cni"
EOT
}

network_settings() {
  cat <<EOT
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "$bridge", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "$pods"}]], "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "$folder/ipam"}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
EOT
}

kubelet_settings() {
  cat <<EOT
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $node
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
clusterDNS: [$gateway]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix://$socket
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
podLogsDir: $folder/pods
resolvConf: $folder/resolv.conf
healthzPort: 0
# Its firewall rules would outlive it.
makeIPTablesUtilChains: false
EOT
}

proxy_settings() {
  cat <<EOT
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: $kubeconfig}
clusterCIDR: $pods
mode: iptables
healthzBindAddress: $node:10256
metricsBindAddress: $node:10249
conntrack: {maxPerCore: 0}
# It would come with a setting of the kernel and a firewall rule, which outlive it.
iptables: {localhostNodePorts: false}
EOT
}

start_api() {
  local token
  token="$(head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n')"
  (umask 077 && echo "$token,tests,tests,system:masters" >"$token_file")
  openssl genrsa -out "$folder/service-accounts.key" 2048 2>/dev/null
  start etcd "$programs/etcd" --data-dir "$folder/etcd" --listen-client-urls "http://$node:2379" --advertise-client-urls "http://$node:2379" \
    --listen-peer-urls "http://$node:2380" --initial-advertise-peer-urls "http://$node:2380" --initial-cluster "default=http://$node:2380" \
    --unsafe-no-fsync --log-level warn
  start kube-apiserver "$programs/kube-apiserver" --etcd-servers "http://$node:2379" --bind-address "$node" --advertise-address "$node" \
    --cert-dir "$folder/api" --service-cluster-ip-range "$services" --token-auth-file "$token_file" --authorization-mode RBAC --kubelet-preferred-address-types InternalIP \
    --service-account-issuer https://kubernetes.default.svc --service-account-signing-key-file "$folder/service-accounts.key" \
    --service-account-key-file "$folder/service-accounts.key" --enable-admission-plugins PodSecurity
  wait_until 60 "the API's certificate" test -s "$folder/api/apiserver.crt"
  (
    umask 077
    cat >"$kubeconfig" <<EOT
apiVersion: v1
kind: Config
current-context: tests
clusters: [{name: tests, cluster: {server: "https://$node:6443", certificate-authority: "$folder/api/apiserver.crt"}}]
users: [{name: tests, user: {token: "$token"}}]
contexts: [{name: tests, context: {cluster: tests, user: tests}}]
EOT
  )
  wait_until 120 "an answer of the API" kubectl get --raw /readyz
}

start_node() {
  start kube-controller-manager "$programs/kube-controller-manager" --kubeconfig "$kubeconfig" --use-service-account-credentials=false \
    --service-account-private-key-file "$folder/service-accounts.key" --root-ca-file "$folder/api/apiserver.crt" --leader-elect=false \
    --cluster-cidr "$pods" --bind-address "$node"
  start kube-scheduler "$programs/kube-scheduler" --kubeconfig "$kubeconfig" --leader-elect=false --bind-address "$node"
  kubelet_settings >"$folder/kubelet.yaml"
  proxy_settings >"$folder/proxy.yaml"
  # Names of services are served by dnsmasq; all others are of no use here.
  : >"$folder/resolv.conf"
  start kubelet "$programs/kubelet" --config "$folder/kubelet.yaml" --kubeconfig "$kubeconfig" --root-dir "$folder/kubelet" \
    --hostname-override node --node-ip "$node" --cert-dir "$folder/kubelet-certificates"
  start kube-proxy "$programs/kube-proxy" --config "$folder/proxy.yaml" --hostname-override node
  wait_until 120 "the node's readiness" kubectl wait --for condition=Ready node/node --timeout 1s
  make_interface "$bridge" "$gateway/24"
  start names "$0" names "$folder"
}

# Keeps the file of the services' names, which dnsmasq reads again when it changes.
serve_names() {
  local new
  mkdir -p "$folder/names"
  dnsmasq --keep-in-foreground --conf-file=/dev/null --listen-address="$gateway" --bind-interfaces --no-resolv --no-hosts \
    --hostsdir="$folder/names" --local=/cluster.local/ --pid-file= &
  trap 'kill %1' EXIT
  while sleep 1; do
    new="$(kubectl get services --all-namespaces --output \
      jsonpath='{range .items[?(@.spec.clusterIP!="None")]}{.spec.clusterIP} {.metadata.name}.{.metadata.namespace}.svc.cluster.local{"\n"}{end}')" || continue
    [ "$new" = "$(cat "$folder/names/services" 2>/dev/null)" ] || {
      echo "$new" >"$folder/names.new" && mv "$folder/names.new" "$folder/names/services"
    }
  done
}

make_interface() { # NAME ADDRESS
  ip link add "$1" type bridge
  ip address add "$2" dev "$1"
  ip link set "$1" up
}

load_images() { # IMAGE...
  say "loading $*"
  # In one archive, which has their common layers once.
  docker save "$@" | ctr --address "$socket" --namespace k8s.io images import - >/dev/null
}

up() {
  [ "$(id -u)" = 0 ] || fail "only root can start a cluster"
  for each in containerd ctr runc dnsmasq conntrack iptables kubectl docker; do
    command -v "$each" >/dev/null || fail "$each is missing"
  done
  mkdir -p "$folder/log" "$folder/pid" "$folder/cni" "$folder/pods"
  make_interface "$interface" "$node/32"
  sysctl -q -w net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1
  # Docker's rule is to forward nothing of others.
  iptables -I FORWARD -i "$bridge" -j ACCEPT
  iptables -I FORWARD -o "$bridge" -j ACCEPT
  # A connection to a service whose rules kube-proxy has not written yet would leave the machine, and stay there.
  iptables -I FORWARD -d "$services" -j REJECT
  containerd_settings >"$folder/containerd.toml"
  network_settings >"$folder/cni/10-pods.conflist"
  start containerd containerd --config "$folder/containerd.toml"
  wait_until 30 "containerd's start" ctr --address "$socket" version
  # The container that holds a pod's network does nothing.
  printf 'FROM %s\nENTRYPOINT ["sleep", "infinity"]\nCMD []\n' "$1" | DOCKER_BUILDKIT=0 docker build --quiet --tag gamelake/pause:kubernetes - >/dev/null
  load_images gamelake/pause:kubernetes "$@"
  start_api
  start_node
  say "the cluster is ready: export KUBECONFIG=$kubeconfig"
}

stop() { # NAME
  local pid
  pid="$(cat "$folder/pid/$1" 2>/dev/null)" || return 0
  kill -- "-$pid" 2>/dev/null || true
  for _ in $(seq 40); do
    kill -0 -- "-$pid" 2>/dev/null || return 0
    sleep 0.5
  done
  kill -9 -- "-$pid" 2>/dev/null || true
}

down() {
  local each
  if [ -S "$socket" ]; then
    for each in kubelet kube-controller-manager kube-scheduler; do stop "$each"; done
    for each in $(ctr --address "$socket" --namespace k8s.io tasks ls -q); do
      ctr --address "$socket" --namespace k8s.io tasks rm --force "$each" >/dev/null 2>&1 || true
    done
    for each in $(ctr --address "$socket" --namespace k8s.io containers ls -q); do
      ctr --address "$socket" --namespace k8s.io containers rm "$each" >/dev/null 2>&1 || true
    done
  fi
  for each in names kube-proxy kube-apiserver etcd containerd; do stop "$each"; done
  "$programs/kube-proxy" --cleanup >/dev/null 2>&1 || true
  iptables -D FORWARD -i "$bridge" -j ACCEPT 2>/dev/null || true
  iptables -D FORWARD -o "$bridge" -j ACCEPT 2>/dev/null || true
  iptables -D FORWARD -d "$services" -j REJECT 2>/dev/null || true
  ip link delete "$bridge" 2>/dev/null || true
  ip link delete "$interface" 2>/dev/null || true
  grep -o " $folder/[^ ]*" /proc/mounts | sort -r | xargs -r umount 2>/dev/null || true
  # Never into what is still mounted.
  ! grep -q " $folder/" /proc/mounts || fail "$folder has mounts left"
  rm -rf "$folder"
}

case "$verb" in
  up) up "${@:3}" ;;
  down) down ;;
  names) serve_names ;;
  *) fail "usage: processes.sh up FOLDER IMAGE... | down FOLDER" ;;
esac
