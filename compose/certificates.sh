#!/usr/bin/env bash
# Creates the internal certificate authority and the services' certificates, once, and again those that expire within a
# month: `certificates.sh`; `certificates.sh --renew` issues the services' certificates again. They are in
# compose/certificates, for this user only. The images must be there: a container creates them.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=compose/read_env.sh
. ./read_env.sh
read_env .

readonly services=(alert-receiver alertmanager audit catalog delivery ingest ingest-events kafka maintenance-scheduler node-exporter
  object-store postgres prometheus quality registry serving trino)

mkdir -p certificates
chmod 0700 certificates
docker run --rm --network none --user "$(id -u):$(id -g)" --read-only --cap-drop ALL --security-opt no-new-privileges \
  --volume "$PWD/certificates:/certificates" "gamelake/spark:$GAMELAKE_TAG" \
  python -m services.provision.certificates "$@" /certificates "${services[@]}"
