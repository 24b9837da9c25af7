#!/usr/bin/env bash
# Makes what processes.sh needs and this machine lacks: Debian's packages, and the programs of Kubernetes and etcd in
# build/kubernetes (KUBERNETES_PROGRAMS: another folder), built from source in the versions of programs/go.mod.
set -euo pipefail
cd "$(dirname "$0")"
readonly folder="${KUBERNETES_PROGRAMS:-$(cd ../.. && pwd)/build/kubernetes}" oldest_go=24 # 1.24, as in programs/go.mod
readonly kubernetes=(kube-apiserver kube-controller-manager kube-proxy kube-scheduler kubelet)

fail() {
  echo "cluster: $*" >&2
  exit 1
}

missing_packages() {
  local each
  for each in containerd:containerd ctr:containerd runc:runc dnsmasq:dnsmasq-base conntrack:conntrack iptables:iptables ip:iproute2 \
    openssl:openssl sysctl:procps; do
    command -v "${each%:*}" >/dev/null || echo "${each#*:}"
  done
  [ -x "${CNI_PLUGINS:-/usr/lib/cni}/bridge" ] || echo containernetworking-plugins
}

install() { # PACKAGE...
  { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; } || fail "these packages are missing: $*; install them, or kind or k3d."
  echo "Installing $*"
  DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends "$@" >/dev/null
}

has_go() {
  local version
  version="$(go env GOVERSION 2>/dev/null)" || return 1
  version="${version#go1.}"
  [ "${version%%[!0-9]*}" -ge "$oldest_go" ]
}

build() { # NAME PACKAGE
  echo "Building $1"
  CGO_ENABLED=0 go build -C programs -trimpath -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version \
    -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$minor" -o "$folder/$1" "$2"
}

mapfile -t packages < <(missing_packages | sort -u)
[ "${#packages[@]}" = 0 ] || install "${packages[@]}"
mkdir -p "$folder"
# Programs of other versions are built again.
if ! cmp --silent programs/go.sum "$folder/go.sum"; then
  rm -f "$folder"/*
  cp programs/go.sum "$folder/go.sum"
fi
command -v kubectl >/dev/null || kubernetes+=(kubectl)
missing=()
for each in etcd "${kubernetes[@]}"; do
  [ -x "$folder/$each" ] || missing+=("$each")
done
[ "${#missing[@]}" != 0 ] || exit 0
if ! has_go && [ "$(id -u)" = 0 ]; then install golang-go; fi
has_go || fail "Go 1.$oldest_go or newer is missing, which builds ${missing[*]}: install it (https://go.dev), or kind or k3d."
version="$(go list -C programs -m -f '{{.Version}}' k8s.io/kubernetes)"
minor="${version#v1.}" minor="${minor%%.*}"
for each in "${missing[@]}"; do
  case "$each" in
    etcd) build etcd go.etcd.io/etcd/server/v3 ;;
    *) build "$each" "k8s.io/kubernetes/cmd/$each" ;;
  esac
done
