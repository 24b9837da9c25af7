#!/usr/bin/env bash
# Kafka's access rules for a user of each workload, as compose/kafka/topics.yaml declares them: `acls.sh BOOTSTRAP_SERVERS
# ADMIN_PROPERTIES` makes them with Kafka's own kafka-acls.sh. `python -m services.provision.topics` makes them too, with users
# and topics, where Kafka's API may.
set -euo pipefail
: "${2:?usage: acls.sh BOOTSTRAP_SERVERS ADMIN_PROPERTIES}"
readonly servers="$1" admin="$2"
acl() {
  kafka-acls.sh --bootstrap-server "$servers" --command-config "$admin" --add "$@"
}

acl --allow-principal User:audit --operation Delete --topic audit.queries
acl --allow-principal User:audit --operation Delete --topic audit.support-calls
acl --allow-principal User:audit --operation Describe --topic audit.queries
acl --allow-principal User:audit --operation Describe --topic audit.support-calls
acl --allow-principal User:audit --operation Read --group audit --resource-pattern-type prefixed
acl --allow-principal User:audit --operation Read --topic audit.queries
acl --allow-principal User:audit --operation Read --topic audit.support-calls
acl --allow-principal User:delivery --operation Describe --topic events
acl --allow-principal User:delivery --operation Read --group delivery --resource-pattern-type prefixed
acl --allow-principal User:delivery --operation Read --topic events
acl --allow-principal User:ingest --operation Describe --topic audit.support-calls
acl --allow-principal User:ingest --operation Describe --topic events
acl --allow-principal User:ingest --operation IdempotentWrite --cluster
acl --allow-principal User:ingest --operation Write --topic audit.support-calls
acl --allow-principal User:ingest --operation Write --topic events
acl --allow-principal User:ingest-events --operation Describe --topic events
acl --allow-principal User:ingest-events --operation Describe --topic files.notifications
acl --allow-principal User:ingest-events --operation Read --group spark-kafka- --resource-pattern-type prefixed
acl --allow-principal User:ingest-events --operation Read --topic events
acl --allow-principal User:ingest-events --operation Read --topic files.notifications
acl --allow-principal User:live-ops --operation Describe --topic events
acl --allow-principal User:live-ops --operation Describe --topic live-ops.player-state
acl --allow-principal User:live-ops --operation Describe --topic live-ops.segments
acl --allow-principal User:live-ops --operation Describe --topic live-ops.signals
acl --allow-principal User:live-ops --operation IdempotentWrite --cluster
acl --allow-principal User:live-ops --operation Read --group spark-kafka- --resource-pattern-type prefixed
acl --allow-principal User:live-ops --operation Read --topic events
acl --allow-principal User:live-ops --operation Write --topic live-ops.player-state
acl --allow-principal User:live-ops --operation Write --topic live-ops.segments
acl --allow-principal User:live-ops --operation Write --topic live-ops.signals
acl --allow-principal User:maintenance --operation Describe --topic events
acl --allow-principal User:maintenance --operation Describe --topic files.notifications
acl --allow-principal User:maintenance --operation DescribeConfigs --topic events
acl --allow-principal User:maintenance --operation DescribeConfigs --topic files.notifications
acl --allow-principal User:maintenance --operation IdempotentWrite --cluster
acl --allow-principal User:maintenance --operation Write --topic files.notifications
acl --allow-principal User:object-store --operation Describe --topic files.notifications
acl --allow-principal User:object-store --operation IdempotentWrite --cluster
acl --allow-principal User:object-store --operation Write --topic files.notifications
acl --allow-principal User:offers --operation Describe --topic live-ops.player-state
acl --allow-principal User:offers --operation Describe --topic live-ops.segments
acl --allow-principal User:offers --operation Describe --topic live-ops.signals
acl --allow-principal User:offers --operation Read --group offers- --resource-pattern-type prefixed
acl --allow-principal User:offers --operation Read --topic live-ops.player-state
acl --allow-principal User:offers --operation Read --topic live-ops.segments
acl --allow-principal User:offers --operation Read --topic live-ops.signals
acl --allow-principal User:simulator --operation Describe --topic events
acl --allow-principal User:simulator --operation IdempotentWrite --cluster
acl --allow-principal User:simulator --operation Write --topic events
acl --allow-principal User:trino --operation Describe --topic audit.queries
acl --allow-principal User:trino --operation IdempotentWrite --cluster
acl --allow-principal User:trino --operation Write --topic audit.queries
