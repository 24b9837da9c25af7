#!/usr/bin/env bash
# Starts Kafka: formats its storage at the first start, gives it the admin's password from the secret, and execs the broker.
# Other users are services/provision's.
set -eu

# Paths in the image; tests override them.
readonly settings="${KAFKA_SETTINGS:-/etc/kafka/server.properties}"
readonly jars="${KAFKA_JARS:-/opt/kafka/libs}"
readonly data="${KAFKA_DATA:-/var/lib/kafka}"
readonly secrets="${KAFKA_SECRETS:-/run/secrets}"
readonly run_directory="${KAFKA_RUN_DIRECTORY:-/run/kafka}"
readonly agent="${KAFKA_JMX_AGENT:-/opt/kafka/jmx/jmx_prometheus_javaagent.jar}"
readonly agent_settings="${KAFKA_JMX_SETTINGS:-/etc/kafka/jmx.yaml}" agent_keys="$run_directory/jmx.p12"
readonly users="$run_directory/users.jaas"
readonly admin_file="$secrets/kafka-admin" known_admin=admin-password.sha256
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

read_admin() {
  [ -f "$admin_file" ] || fail "$admin_file is missing, which the broker itself needs: run 'make up'."
  admin="$(value_of "$admin_file" username)"
  password="$(value_of "$admin_file" password)"
  check_plain "$admin_file" username "$admin"
  check_plain "$admin_file" password "$password"
}

write_users() {
  local listener entries=""
  for listener in broker controller; do
    entries="$entries
$listener.KafkaServer {
  org.apache.kafka.common.security.plain.PlainLoginModule required
  username=\"$admin\"
  password=\"$password\"
  user_$admin=\"$password\";
};"
  done
  mkdir -p "$run_directory"
  (umask 077 && rm -f "$users" && printf '%s\n' "KafkaServer {
  org.apache.kafka.common.security.scram.ScramLoginModule required;
};$entries" >"$users")
}

# Runs one of Kafka's tools. Its arguments are in a file that only this user can read, because others can see a process's
# command line, and some have a password.
tool() { # CLASS ARGUMENT...
  local arguments="$run_directory/$1.arguments" code=0
  (umask 077 && printf '%s\n' -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$jars/*" "$@" >"$arguments")
  "$java" "@$arguments" || code=$?
  rm -f "$arguments"
  return "$code"
}

# The JMX exporter's settings, by HTTPS and for Prometheus' password only. It reads no PEM.
write_agent_settings() {
  local keys_password
  keys_password="$(head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n')"
  (
    umask 077
    openssl pkcs12 -export -in "$secrets/tls-kafka" -inkey "$secrets/tls-kafka" -out "$agent_keys" -name kafka -passout stdin \
      <<<"$keys_password"
    cat "$agent_settings" - >"$run_directory/jmx.yaml" <<EOT

httpServer:
  authentication:
    basic: {username: prometheus, password: "$(cat "$secrets/kafka-metrics")"}
  ssl:
    keyStore: {filename: "$agent_keys", password: "$keys_password"}
    certificate: {alias: kafka}
EOT
  )
}

# Which password of the admin Kafka has a hash of.
digest() {
  sha256sum <"$admin_file"
}

format_storage() {
  [ ! -f "$data/meta.properties" ] || return 0
  local cluster
  cluster="$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=')"
  # Option and value in one argument: a random id may start with a dash.
  # It prints what it writes, the hash of the password as well.
  tool kafka.tools.StorageTool format "--cluster-id=$cluster" --config "$settings" --ignore-formatted \
    --add-scram "SCRAM-SHA-512=[name=$admin,password=$password]" >/dev/null
  digest >"$data/$known_admin"
  # The tool doesn't, and Kafka can't start with the rest of bootstrap.checkpoint that a power cut leaves.
  sync "$data"/*.* "$data/$known_admin" "$data"
}

# Has Kafka know the admin's password after the secret was changed, or with data from a time before SCRAM: by a Kafka that
# only listens on its own listeners, so that no client is refused for a password that is about to be right.
set_admin_password() {
  local own=() each address="" controller="" broker code=0
  IFS=, read -r -a own <<<"$(value_of "$settings" listeners)"
  for each in "${own[@]}"; do
    case "$each" in BROKER://*) address="${each#BROKER://}" ;; CONTROLLER://*) controller="$each" ;; esac
  done
  # shellcheck disable=SC2086 # as below
  "$java" ${KAFKA_HEAP_OPTS:--Xmx512m} "-Djava.security.auth.login.config=$users" -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
    -cp "$jars/*" kafka.Kafka "$settings" --override "listeners=$controller,BROKER://$address" \
    --override "advertised.listeners=BROKER://$address" &
  broker=$!
  until (exec 3<>"/dev/tcp/${address%:*}/${address#*:}") 2>/dev/null; do
    kill -0 "$broker" 2>/dev/null || fail "Kafka ended before it had the admin's new password."
    sleep 0.2
  done
  (umask 077 && printf '%s\n' security.protocol=SASL_PLAINTEXT sasl.mechanism=PLAIN \
    "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username=\"$admin\" password=\"$password\";" \
    >"$run_directory/admin.properties")
  tool kafka.admin.ConfigCommand --bootstrap-server "$address" --command-config "$run_directory/admin.properties" \
    --alter --entity-type users --entity-name "$admin" --add-config "SCRAM-SHA-512=[password=$password]" >&2 || code=$?
  rm -f "$run_directory/admin.properties"
  kill "$broker"
  wait "$broker" || true
  [ "$code" = 0 ] || fail "Kafka did not take the admin's new password."
  digest >"$data/$known_admin"
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
    write_agent_settings
    options+=("-javaagent:$agent=$KAFKA_JMX_PORT:$run_directory/jmx.yaml")
  fi
  local override=()
  if [ -n "${KAFKA_HOST_PORT:-}" ]; then
    override=(--override "advertised.listeners=INTERNAL://kafka:9092,HOST://127.0.0.1:$KAFKA_HOST_PORT,BROKER://localhost:9094")
  fi
  if [ "${TLS:-1}" = 0 ]; then
    override+=(--override "listener.security.protocol.map=INTERNAL:SASL_PLAINTEXT,HOST:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT,BROKER:SASL_PLAINTEXT")
  fi
  if [ "${KAFKA_SYNC:-1}" != 1 ]; then
    override+=(--override log.flush.interval.messages=9223372036854775807) # Kafka's default: the kernel decides
  fi
  # shellcheck disable=SC2086 # several options in one variable, as Kafka's own scripts take them
  exec "$java" ${KAFKA_HEAP_OPTS:--Xms512m -Xmx512m} "${options[@]}" -cp "$jars/*" \
    kafka.Kafka "$settings" ${override[@]+"${override[@]}"}
}

read_admin
write_users
format_storage
if [ "$(digest)" != "$(cat "$data/$known_admin" 2>/dev/null)" ]; then
  set_admin_password
fi
start_broker
