#!/usr/bin/env bash
# Builds the stack's images, one after the other: `images.sh [NAME...]`, without a name all but keycloak.
# Sequential, because builds use all cores; with the engine's cache a second run takes seconds. FRESH=1 builds without the
# cache, and so with the latest corrections of Debian's packages.
set -euo pipefail
cd "$(dirname "$0")/.."
# Its variables are build arguments.
set -a
. compose/.env
[ ! -f compose/.env.override ] || . compose/.env.override
set +a

readonly all=(base java toolchain postgres object-store kafka registry spark trino prometheus alertmanager)
readonly bootstrapped="gamelake/debian:trixie"
readonly log=build/images.log

say() {
  echo "images: $*"
}

fail() {
  say "$*" >&2
  exit 1
}

# Certificate authorities of the machine, for example of a TLS proxy, from Debian's folder for local ones.
collect_certificates() {
  rm -rf build/certificates
  mkdir -p build/certificates
  find /usr/local/share/ca-certificates -name '*.crt' -exec cp {} build/certificates/ \; 2>/dev/null || true
}

# Debian's own image, or without a container registry the same system from Debian's packages.
debian_image() {
  local candidate
  for candidate in "$DEBIAN_IMAGE" "$bootstrapped"; do
    if [ "${FRESH:-}" != 1 ] && docker image inspect "$candidate" >/dev/null 2>&1; then
      echo "$candidate"
      return
    fi
  done
  if docker pull --quiet "$DEBIAN_IMAGE" >>"$log" 2>&1; then
    echo "$DEBIAN_IMAGE"
    return
  fi
  say "no container registry responds: building $bootstrapped from Debian's packages" >&2
  bootstrap_debian
  echo "$bootstrapped"
}

bootstrap_debian() {
  local root
  command -v debootstrap >/dev/null || fail "debootstrap is missing: install it (Debian: apt-get install debootstrap)."
  [ "$(id -u)" = 0 ] || fail "debootstrap needs root: run make images as root once, or pull $DEBIAN_IMAGE."
  root="$(mktemp -d)"
  debootstrap --variant=minbase trixie "$root" >>"$log" 2>&1 || fail "debootstrap failed: see $log"
  # Debian's own image has these too.
  printf 'deb http://deb.debian.org/debian%s main\n' " trixie" " trixie-updates" "-security trixie-security" \
    >"$root/etc/apt/sources.list"
  tar -C "$root" -c . | docker import - "$bootstrapped" >>"$log"
  rm -rf "$root"
}

build() { # NAME
  local started=$SECONDS
  # The classic builder needs no buildx plugin, and no Dockerfile here needs BuildKit.
  DOCKER_BUILDKIT="${DOCKER_BUILDKIT:-0}" docker build --file "compose/$1/Dockerfile" --tag "gamelake/$1:$GAMELAKE_TAG" \
    --label "dev.gamelake.image=$1" ${fresh[@]+"${fresh[@]}"} \
    --build-arg "DEBIAN=$debian" \
    --build-arg "BASE=gamelake/base:$GAMELAKE_TAG" \
    --build-arg "JAVA=gamelake/java:$GAMELAKE_TAG" \
    --build-arg "TOOLCHAIN=gamelake/toolchain:$GAMELAKE_TAG" \
    --build-arg "JMX_EXPORTER_VERSION=$JMX_EXPORTER_VERSION" \
    --build-arg "MINIO_VERSION=$MINIO_VERSION" \
    . >>"$log" 2>&1 || fail "building $1 failed; the last lines of $log: $(tail -n 5 "$log")"
  say "$1: $((SECONDS - started)) s"
}

case "${1:-}" in
  -h | --help)
    sed -n '2,4s/^# //p' "$0"
    exit
    ;;
esac
docker info >/dev/null 2>&1 || fail "the Docker engine does not respond; run make doctor."
mkdir -p build
: >"$log"
collect_certificates
# The Python packages are installed by uv, which they don't need at run time.
sed -n '/^uv==/,/[^\\]$/p' requirements.lock >build/uv.lock
fresh=()
[ "${FRESH:-}" != 1 ] || fresh=(--no-cache)
debian="$(debian_image)"
for name in "${@:-${all[@]}}"; do
  build "$name"
done
