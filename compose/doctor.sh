#!/usr/bin/env bash
# Checks whether this machine can run the stack, as the Docker engine sees it: one PASS, WARN or FAIL line per requirement,
# with a remedy. `doctor.sh --minimal` checks what `make up-minimal` runs; exit code 1 if any check FAILs.
# macOS still ships bash 3.2: no newer syntax here.
set -eu

here="$(cd "$(dirname "$0")" && pwd)"
# Tests override it.
readonly here compose_directory="${COMPOSE_DIRECTORY:-$here}"
# shellcheck source=compose/read_env.sh
. "$here/read_env.sh"
readonly oldest_engine=20.10
readonly oldest_compose=2.20
readonly cores_wanted=2
# In addition to the containers' limits: for the engine, the kernel's caches and other programs.
readonly spare_mib=1024
# Images take about 6 GiB, building them as much again; tables and Kafka's log grow over time.
readonly disk_needed_gib=8
readonly disk_wanted_gib=20

failures=0
mix=full

usage() {
  cat <<EOT
usage: doctor.sh [--minimal | --help]
  (nothing)  check this machine for the whole stack
  --minimal  check it for the stack of make up-minimal
Reads compose/.env and compose/.env.override, and WORKERS (how many Spark workers, default 1).
EOT
}

pass() { echo "PASS $1"; }

warn() { echo "WARN $1"; }

fail() {
  echo "FAIL $1"
  failures=$((failures + 1))
}

is_at_least() { # VERSION OLDEST; compares the first two numbers
  local major minor oldest_major oldest_minor
  IFS=. read -r major minor _ <<<"$1.0"
  IFS=. read -r oldest_major oldest_minor _ <<<"$2.0"
  minor="${minor%%[!0-9]*}"
  [ "$major" -gt "$oldest_major" ] || { [ "$major" -eq "$oldest_major" ] && [ "${minor:-0}" -ge "$oldest_minor" ]; }
}

# What `make up` starts: not the services of `make quality-daily`, which are off. OIDC and BI add theirs.
# The overlays of official images don't change memory limits or ports.
compose_files() {
  local overlay overlays="serving observability grafana"
  echo "$compose_directory/compose.yaml"
  [ "$mix" != minimal ] || overlays=""
  [ "${OIDC:-0}" != keycloak ] || overlays="$overlays keycloak"
  [ "${BI:-0}" != 1 ] || overlays="$overlays bi"
  for overlay in $overlays; do
    [ ! -f "$compose_directory/compose.$overlay.yaml" ] || echo "$compose_directory/compose.$overlay.yaml"
  done
}

# The variables of .env that the chosen compose files use, so that this script needs no list of services.
variables_ending_in() { # SUFFIX
  compose_files | while IFS= read -r file; do
    grep -o "\${[A-Z_]*$1[:}]" "$file" | sed 's/[^A-Z_]//g' || true
  done | sort -u
}

engine_info() { # GO TEMPLATE
  docker info --format "$1" 2>/dev/null
}

check_engine() {
  local version
  if ! command -v docker >/dev/null 2>&1; then
    fail "engine: there is no docker command; install Docker (https://docs.docker.com/engine/install)"
    return 1
  fi
  version="$(engine_info '{{.ServerVersion}}')" || version=""
  if [ -z "$version" ]; then
    fail "engine: it does not respond; start Docker, or add yourself to the group that may use it (Linux: sudo usermod -aG docker \$USER, then log in again)"
    return 1
  fi
  if is_at_least "$version" "$oldest_engine"; then
    pass "engine: $version"
  else
    fail "engine: $version is older than $oldest_engine; update Docker"
  fi
}

check_compose() {
  local version
  version="$(docker compose version --short 2>/dev/null)" || version=""
  version="${version#v}"
  if [ -z "$version" ]; then
    fail "compose: docker has no compose command; install the compose plugin, $oldest_compose or newer (Debian: apt-get install docker-compose-plugin from Docker's repository)"
  elif is_at_least "$version" "$oldest_compose"; then
    pass "compose: $version"
  else
    fail "compose: $version is older than $oldest_compose; update the compose plugin"
  fi
}

check_architecture() {
  local architecture
  architecture="$(engine_info '{{.Architecture}}')"
  case "$architecture" in
    x86_64 | amd64 | aarch64 | arm64) pass "architecture: $architecture" ;;
    *) fail "architecture: the images support amd64 and arm64, not $architecture; use another machine" ;;
  esac
}

memory_needed_mib() {
  local name sum=0 share
  for name in $(variables_ending_in _MEMORY); do
    share="${!name:-0}"
    [ "$name" != SPARK_WORKER_MEMORY ] || share=$((share * ${WORKERS:-1}))
    sum=$((sum + share))
  done
  echo "$sum"
}

check_memory() {
  local seen needed remedy
  seen=$(($(engine_info '{{.MemTotal}}') / 1048576))
  needed="$(memory_needed_mib)"
  remedy="give the engine more (Docker Desktop: Settings, Resources)"
  [ "$mix" = minimal ] || remedy="$remedy, or run make up-minimal"
  if [ "$seen" -lt "$needed" ]; then
    fail "memory: the engine has $seen MiB, the containers may take $needed MiB; $remedy"
  elif [ "$seen" -lt $((needed + spare_mib)) ]; then
    warn "memory: the engine has $seen MiB, the containers may take $needed MiB, which leaves little for other programs; $remedy"
  else
    pass "memory: the engine has $seen MiB, the containers may take $needed MiB"
  fi
  [ "$(engine_info '{{.MemoryLimit}}')" = true ] ||
    warn "memory: this engine enforces no limits, so one container can use all memory; enable the kernel's memory cgroup"
}

check_cores() {
  local seen
  seen="$(engine_info '{{.NCPU}}')"
  if [ "$seen" -ge "$cores_wanted" ]; then
    pass "cores: $seen"
  else
    warn "cores: the engine has $seen, and the start takes minutes with less than $cores_wanted; give it more (Docker Desktop: Settings, Resources)"
  fi
}

check_disk() {
  local root free_gib
  root="$(engine_info '{{.DockerRootDir}}')"
  free_gib="$(df -Pk "$root" 2>/dev/null | awk 'NR == 2 { print int($4 / 1048576) }')" || free_gib=""
  if [ -z "$free_gib" ]; then
    warn "disk: the engine's data is in a virtual machine, whose disk can't be checked from here; make sure that it has $disk_wanted_gib GiB free (docker system df)"
  elif [ "$free_gib" -lt "$disk_needed_gib" ]; then
    fail "disk: $free_gib GiB free under $root, at least $disk_needed_gib are required; free disk space (docker system prune removes what no container uses)"
  elif [ "$free_gib" -lt "$disk_wanted_gib" ]; then
    warn "disk: $free_gib GiB free under $root; with less than $disk_wanted_gib tables and logs soon fill it; free disk space (docker system prune removes what no container uses)"
  else
    pass "disk: $free_gib GiB free under $root"
  fi
}

accepts_connections() { # PORT
  (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# Not from `docker ps`, which prints adjacent ports as a range.
own_ports() {
  local containers
  containers="$(docker ps --quiet --filter "label=com.docker.compose.project=$project")"
  [ -n "$containers" ] || return 0
  # shellcheck disable=SC2086 # one word for each container
  docker inspect --format '{{range .NetworkSettings.Ports}}{{range .}} {{.HostPort}} {{end}}{{end}}' $containers
}

holder_of() { # PORT; a container of any project; also works if the engine runs in a virtual machine
  docker ps --filter "publish=$1" --format '{{.Names}}' 2>/dev/null | head -n 1
}

check_ports() {
  local name port ours holder taken=0 number=0
  ours="$(own_ports 2>/dev/null)" || ours=""
  for name in $(variables_ending_in _PORT); do
    port="${!name:-}"
    [ -n "$port" ] || continue
    number=$((number + 1))
    case "$ours" in
      *" $port "*) continue ;;
    esac
    holder="$(holder_of "$port")"
    if [ -n "$holder" ]; then
      fail "ports: the container $holder uses 127.0.0.1:$port; stop it (docker stop $holder), or set another port with $name=... in compose/.env.override"
      taken=$((taken + 1))
    elif accepts_connections "$port"; then
      fail "ports: another program listens on 127.0.0.1:$port; stop it, or set another port with $name=... in compose/.env.override"
      taken=$((taken + 1))
    fi
  done
  [ "$taken" -gt 0 ] || pass "ports: all $number are free on 127.0.0.1, or this stack's own"
}

case "${1:-}" in
  "") ;;
  --minimal) mix=minimal ;;
  --help)
    usage
    exit 0
    ;;
  *)
    usage >&2
    exit 1
    ;;
esac

read_env "$compose_directory"
readonly project="${COMPOSE_PROJECT_NAME:-gamelake}"
# Without an engine all other checks would fail for the same reason.
check_engine || exit 1
check_compose
check_architecture
check_memory
check_cores
check_disk
check_ports
[ "$failures" -eq 0 ]
