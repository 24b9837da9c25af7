#!/usr/bin/env bash
# Starts MinIO with its root key from the secret's file, and with the Kafka topic for notifications as target FILES.
# With bash alone: MinIO's own image has no sed.
set -euo pipefail
value_of() { # SECRET KEY
  local name value
  while IFS=' =' read -r name value || [ -n "$name" ]; do
    if [ "$name" = "$2" ]; then echo "$value"; fi
  done <"/run/secrets/$1"
}
MINIO_ROOT_USER="$(value_of object-store-root aws_access_key_id)"
MINIO_ROOT_PASSWORD="$(value_of object-store-root aws_secret_access_key)"
export MINIO_ROOT_USER MINIO_ROOT_PASSWORD

# Notifications are queued in a folder while Kafka is down: an upload never waits for it.
export MINIO_NOTIFY_KAFKA_ENABLE_FILES=on
export MINIO_NOTIFY_KAFKA_BROKERS_FILES="${OBJECT_STORE_KAFKA:-kafka:9092}"
export MINIO_NOTIFY_KAFKA_TOPIC_FILES=files.notifications
export MINIO_NOTIFY_KAFKA_SASL_FILES=on
export MINIO_NOTIFY_KAFKA_SASL_MECHANISM_FILES=sha512
# The protocol version of MinIO's Kafka client; Kafka 4 no longer supports the default.
export MINIO_NOTIFY_KAFKA_VERSION_FILES=3.6.0
export MINIO_NOTIFY_KAFKA_QUEUE_DIR_FILES=/notifications
export MINIO_NOTIFY_KAFKA_QUEUE_LIMIT_FILES=1000000
# Acknowledge an upload once its notification is in that folder, and accept none before the targets are loaded: by default
# a killed store loses the notifications of its last uploads and of the first ones after its restart.
export MINIO_API_SYNC_EVENTS=on
export MINIO_SYNC_BOOT=on
MINIO_NOTIFY_KAFKA_SASL_USERNAME_FILES="$(value_of kafka-object-store username)"
MINIO_NOTIFY_KAFKA_SASL_PASSWORD_FILES="$(value_of kafka-object-store password)"
export MINIO_NOTIFY_KAFKA_SASL_USERNAME_FILES MINIO_NOTIFY_KAFKA_SASL_PASSWORD_FILES
tls=()
if [ "${TLS:-1}" != 0 ]; then
  # By the names that MinIO expects, and in a file each: the secret has the key, then the certificate.
  readonly certificates=/tmp/certificates begins="-----BEGIN CERTIFICATE-----"
  secret="$(</run/secrets/tls-object-store)"
  mkdir -p "$certificates/CAs"
  (umask 077 && printf %s "${secret%%"$begins"*}" >"$certificates/private.key")
  echo "$begins${secret#*"$begins"}" >"$certificates/public.crt"
  ln -sf /run/secrets/tls-ca "$certificates/CAs/ca.crt"
  export MINIO_NOTIFY_KAFKA_TLS_FILES=on
  tls=(--certs-dir "$certificates")
fi
exec minio server /data --address :9000 --console-address :9001 ${tls[@]+"${tls[@]}"}
