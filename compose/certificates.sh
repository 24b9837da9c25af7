#!/usr/bin/env bash
# Creates the internal certificate authority, the services' certificates, and the operator's one for the pages of Prometheus,
# Alertmanager, Spark, Data Docs and the portal, once, and again those that expire within a month: `certificates.sh`; `certificates.sh
# --renew` issues all again. They are in compose/certificates, for this user only. The images must be there: a container
# creates them.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=compose/read_env.sh
. ./read_env.sh
read_env .

services=(alert-receiver alertmanager audit catalog certificate-probe data-docs delivery grafana ingest ingest-events kafka
  maintenance-scheduler node-exporter object-store portal postgres prometheus quality registry serving spark-history spark-master spark-worker trino)
# The provider to try logins with, by the name that browsers know it by, too.
[ "${OIDC:-0}" != keycloak ] || services+=(identity.localhost)
[ "${BI:-0}" != 1 ] || services+=(superset)

mkdir -p certificates
chmod 0700 certificates
docker run --rm --network none --user "$(id -u):$(id -g)" --read-only --cap-drop ALL --security-opt no-new-privileges \
  --volume "$PWD/certificates:/certificates" "gamelake/spark:$GAMELAKE_TAG" \
  python -m services.provision.certificates "$@" --client operator /certificates "${services[@]}"
