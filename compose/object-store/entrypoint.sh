#!/usr/bin/env bash
# Starts MinIO with its root key from the secret's file. With bash alone: MinIO's own image has no sed.
set -euo pipefail
value_of() { # KEY
  local name value
  while IFS=' =' read -r name value || [ -n "$name" ]; do
    if [ "$name" = "$1" ]; then echo "$value"; fi
  done </run/secrets/object-store-root
}
MINIO_ROOT_USER="$(value_of aws_access_key_id)"
MINIO_ROOT_PASSWORD="$(value_of aws_secret_access_key)"
export MINIO_ROOT_USER MINIO_ROOT_PASSWORD
exec minio server /data --address :9000 --console-address :9001
