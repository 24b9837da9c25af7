#!/usr/bin/env bash
# Starts Kafka: formats its storage at the first start, creates the users' file from the secrets, and execs the broker.
set -eu

# Paths in the image; tests override them.
readonly settings="${KAFKA_SETTINGS:-/etc/kafka/server.properties}"
readonly jars="${KAFKA_JARS:-/opt/kafka/libs}"
readonly data="${KAFKA_DATA:-/var/lib/kafka}"
readonly secrets="${KAFKA_SECRETS:-/run/secrets}"
readonly run_directory="${KAFKA_RUN_DIRECTORY:-/run/kafka}"
readonly agent="${KAFKA_JMX_AGENT:-/opt/kafka/jmx/jmx_prometheus_javaagent.jar}"
readonly agent_settings="${KAFKA_JMX_SETTINGS:-/etc/kafka/jmx.yaml}"
readonly users="$run_directory/users.jaas"
readonly java="${JAVA_HOME:+$JAVA_HOME/bin/}java"

fail() {
  echo "kafka: $1" >&2
  exit 2
}

value_of() { # FILE KEY
  local line
  while IFS= read -r line || [ -n "$line" ]; do
    case "$line" in
      "$2="*)
        echo "${line#*=}"
        return
        ;;
    esac
  done <"$1"
}

# The two parsers of JAAS files disagree on escaped quotes, so secrets contain only characters that need no escaping.
check_plain() { # FILE KEY VALUE
  case "$3" in
    "") fail "$1 has no line '$2=...': remove it and run 'make up', which creates it again." ;;
    *[!A-Za-z0-9_.-]*) fail "the $2 in $1 may have letters, digits, '_', '.' and '-' only: remove it and run 'make up'." ;;
  esac
}

write_users() {
  local file username password own_name="" own_password="" entries=""
  for file in "$secrets"/kafka-*; do
    [ -f "$file" ] || fail "$secrets has no kafka-* secrets: run 'make up', which creates them."
    username="$(value_of "$file" username)"
    password="$(value_of "$file" password)"
    check_plain "$file" username "$username"
    check_plain "$file" password "$password"
    entries="$entries
  user_$username=\"$password\""
    if [ "${file##*/}" = kafka-admin ]; then
      own_name="$username" own_password="$password"
    fi
  done
  [ -n "$own_name" ] || fail "$secrets/kafka-admin is missing, which the broker itself needs: run 'make up'."
  mkdir -p "$run_directory"
  (umask 077 && rm -f "$users" && printf '%s\n' "KafkaServer {
  org.apache.kafka.common.security.plain.PlainLoginModule required
  username=\"$own_name\"
  password=\"$own_password\"$entries;
};" >"$users")
}

format_storage() {
  [ ! -f "$data/meta.properties" ] || return 0
  local cluster
  cluster="$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=')"
  # Option and value in one argument: a random id may start with a dash.
  "$java" -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$jars/*" kafka.tools.StorageTool format \
    "--cluster-id=$cluster" --config "$settings" --ignore-formatted
  # The tool doesn't, and Kafka can't start with what a power cut leaves of bootstrap.checkpoint.
  sync "$data"/*.* "$data"
}

start_broker() {
  local options=(
    "-Djava.security.auth.login.config=$users"
    -XX:+UseG1GC -XX:+ExitOnOutOfMemoryError -XX:-UsePerfData
    # slf4j-simple: at "info" a page of shutdown messages hides the reason of a failure; authorization errors stay visible.
    -Dorg.slf4j.simpleLogger.defaultLogLevel=warn
    -Dorg.slf4j.simpleLogger.log.kafka.authorizer.logger=info
    -Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info
    -Dorg.slf4j.simpleLogger.showDateTime=true
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX"
  )
  if [ -n "${KAFKA_JMX_PORT:-}" ]; then
    options+=("-javaagent:$agent=$KAFKA_JMX_PORT:$agent_settings")
  fi
  local override=()
  if [ -n "${KAFKA_HOST_PORT:-}" ]; then
    override=(--override "advertised.listeners=INTERNAL://kafka:9092,HOST://127.0.0.1:$KAFKA_HOST_PORT")
  fi
  if [ "${KAFKA_SYNC:-1}" != 1 ]; then
    override+=(--override log.flush.interval.messages=9223372036854775807) # Kafka's default: the kernel decides
  fi
  # shellcheck disable=SC2086 # several options in one variable, as Kafka's own scripts take them
  exec "$java" ${KAFKA_HEAP_OPTS:--Xms512m -Xmx512m} "${options[@]}" -cp "$jars/*" \
    kafka.Kafka "$settings" ${override[@]+"${override[@]}"}
}

write_users
format_storage
start_broker
