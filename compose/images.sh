#!/usr/bin/env bash
# Builds the stack's images: `images.sh [NAME...]`, without a name all but keycloak and superset.
# Images that don't depend on each other are built side by side: one downloads while another one compiles. Without a name
# nothing is built if nothing has changed since the last time. FRESH=1 builds without the engine's cache, and so with the
# latest corrections of Debian's packages.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=compose/read_env.sh
. compose/read_env.sh
read_env compose

readonly bootstrapped="gamelake/debian:trixie"
readonly log=build/images.log built_from=build/images/inputs
# The images of a stage begin with images of earlier stages.
readonly stages=("base" "java postgres prometheus alertmanager" "toolchain" "object-store spark trino kafka registry keycloak superset")
readonly seconds_between_reports=30

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

# The id of the image that has a name, or nothing.
image_id() { # NAME
  docker image inspect --format '{{.Id}}' "gamelake/$1:$GAMELAKE_TAG" 2>/dev/null || true
}

# Prints all that the images are made of, and their ids: the arguments, and the checksum of each file that .dockerignore
# lets pass, and whether it can be executed.
inputs() { # IMAGE...
  local line allowed=() ignored=()
  while IFS= read -r line; do
    case "$line" in
      "" | "#"* | "*") ;;
      "!"*) [ ! -e "${line#!}" ] || allowed+=("${line#!}") ;;
      *) ignored+=("!" -path "${line/#\*\*/*}" "!" -path "${line/#\*\*/*}/*") ;;
    esac
  done <.dockerignore
  docker image inspect --format '{{.Id}}' "$debian" "${@/%/:$GAMELAKE_TAG}" || return
  echo "$JMX_EXPORTER_VERSION $MINIO_VERSION"
  find "${allowed[@]}" -type f -perm -u+x "${ignored[@]}" | LC_ALL=C sort
  find "${allowed[@]}" -type f "${ignored[@]}" -print0 | LC_ALL=C sort -z | xargs -0 cksum
}

# Reports every 30 s which step the build of an image has reached.
report_until_the_end_of() { # PROCESS NAME LOG
  local reported=$SECONDS
  while kill -0 "$1" 2>/dev/null; do
    if [ $((SECONDS - reported)) -ge "$seconds_between_reports" ]; then
      reported=$SECONDS
      say "$2: $(sed -n 's/^\(Step [0-9/]*\) : \([^ ]* [^ ]*\).*/\1, \2/p' "$3" | tail -n 1)"
    fi
    sleep 0.2
  done
}

build() { # NAME
  local started=$SECONDS superseded own_log="build/images/$1.log"
  superseded="$(image_id "$1")"
  # The classic builder needs no buildx plugin, and no Dockerfile here needs BuildKit.
  DOCKER_BUILDKIT="${DOCKER_BUILDKIT:-0}" docker build --file "compose/$1/Dockerfile" --tag "gamelake/$1:$GAMELAKE_TAG" \
    --label "dev.gamelake.image=$1" ${fresh[@]+"${fresh[@]}"} \
    --build-arg "DEBIAN=$debian" \
    --build-arg "BASE=gamelake/base:$GAMELAKE_TAG" \
    --build-arg "JAVA=gamelake/java:$GAMELAKE_TAG" \
    --build-arg "TOOLCHAIN=gamelake/toolchain:$GAMELAKE_TAG" \
    --build-arg "JMX_EXPORTER_VERSION=$JMX_EXPORTER_VERSION" \
    --build-arg "MINIO_VERSION=$MINIO_VERSION" \
    . >"$own_log" 2>&1 &
  report_until_the_end_of "$!" "$1" "$own_log"
  wait "$!" || fail "building $1 failed; the last lines of $own_log: $(tail -n 5 "$own_log")"
  # The image that had this name before fills the disk; a container that still runs from it keeps it. Only this image goes:
  # a prune by label would also remove the build stages, which have the label of the image that they begin with.
  if [ -n "$superseded" ] && [ "$superseded" != "$(image_id "$1")" ]; then
    docker image rm "$superseded" >>"$own_log" 2>&1 || true
  fi
  say "$1: $((SECONDS - started)) s"
}

# Prints the requested images that belong to a stage.
asked_for() { # "NAME..." OF THE STAGE, NAME...
  local stage=" $1 " name
  shift
  for name; do
    case "$stage" in *" $name "*) echo "$name" ;; esac
  done
}

# Builds images at the same time. Waits for all of them, also if one fails: the cache keeps what the others have built.
side_by_side() { # NAME...
  local name process failed=0 processes=()
  for name; do
    build "$name" &
    processes+=("$!")
  done
  for process in ${processes[@]+"${processes[@]}"}; do
    wait "$process" || failed=1
  done
  return "$failed"
}

end_builds() {
  local process
  for process in $(jobs -p); do
    kill -- "-$process" 2>/dev/null || true
  done
}

case "${1:-}" in
  -h | --help)
    sed -n '2,5s/^# //p' "$0"
    exit
    ;;
esac
docker info >/dev/null 2>&1 || fail "the Docker engine does not respond; run make doctor."
mkdir -p build/images
: >"$log"
collect_certificates
# The Python packages are installed by uv, which they don't need at run time.
sed -n '/^uv==/,/[^\\]$/p' requirements.lock >build/uv.lock
fresh=()
[ "${FRESH:-}" != 1 ] || fresh=(--no-cache)
debian="$(debian_image)"
# Names have no spaces.
[ $# = 0 ] && all=1 || all=0
# shellcheck disable=SC2086
[ "$all" = 0 ] || set -- ${stages[*]% keycloak superset}
for name; do
  case " ${stages[*]} " in
    *" $name "*) ;;
    *) fail "there is no image '$name'; the images are: ${stages[*]}" ;;
  esac
done
if [ "$all" = 1 ] && [ "${#fresh[@]}" = 0 ] && [ -f "$built_from" ] &&
  inputs "${@/#/gamelake/}" 2>/dev/null | cmp --silent - "$built_from"; then
  say "unchanged"
  exit
fi
rm -f "$built_from"
# A process group for each build: the terminal's Ctrl-C ends this script, which ends them.
set -m
trap end_builds EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
for stage in "${stages[@]}"; do
  # shellcheck disable=SC2046
  side_by_side $(asked_for "$stage" "$@") || exit
done
[ "$all" = 0 ] || inputs "${@/#/gamelake/}" >"$built_from" || rm -f "$built_from"
# Build stages of older Dockerfiles.
docker image prune --force --filter "label=dev.gamelake.image" --filter "until=$((7 * 24))h" >>"$log"
