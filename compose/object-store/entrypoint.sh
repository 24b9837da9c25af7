#!/usr/bin/env bash
# Starts MinIO with its root key from the secret's file.
set -euo pipefail
value_of() {
  sed -n "s/^ *$1 *= *//p" /run/secrets/object-store-root
}
MINIO_ROOT_USER="$(value_of aws_access_key_id)"
MINIO_ROOT_PASSWORD="$(value_of aws_secret_access_key)"
export MINIO_ROOT_USER MINIO_ROOT_PASSWORD
exec minio server /data --address :9000 --console-address :9001
