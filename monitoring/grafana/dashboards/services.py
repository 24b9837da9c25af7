"""Services, for who keeps them up: Kafka, object store, Spark, Trino, registry, machines, and the monitoring itself."""

from grafana_foundation_sdk.models import units

from monitoring.grafana.page import Page, Row
from monitoring.grafana.panels import Ask, Course, Figure, Limits

_UP = Row(
    "Is everything up?",
    (
        Course(
            title="Services that answer",
            description="1: Prometheus reaches it; of several workers, the worst. See the runbook TargetDown.",
            unit=units.NoUnit,
            asks=(Ask("min by (job) (up)", "{{job}}"),),
        ),
        Course(
            title="Time to answer",
            description="How long each service takes to tell its figures. One that slows down is short of something.",
            unit=units.Seconds,
            asks=(Ask("max by (job) (scrape_duration_seconds)", "{{job}}"),),
        ),
    ),
)

_MACHINES = Row(
    "Have the machines enough?",
    (
        Course(
            title="Processor in use",
            description="Share of all cores.",
            unit=units.PercentUnit,
            asks=(
                Ask(
                    '1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[$__rate_interval]))',
                    "{{instance}}",
                ),
            ),
            width=8,
        ),
        Course(
            title="Memory available",
            description="Share that a process could still get. Below a tenth: see the runbook HostMemoryLow.",
            unit=units.PercentUnit,
            asks=(
                Ask("min by (instance) (node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)", "{{instance}}"),
            ),
            limits=Limits(0.2, 0.1),
            width=8,
        ),
        Course(
            title="Disk free",
            description="Share of each disk. All containers' data is on one of them; see the runbook HostDiskFilling.",
            unit=units.PercentUnit,
            asks=(Ask("gamelake:host_disk_free:ratio", "{{instance}} {{device}}"),),
            limits=Limits(0.1, 0.03),
            width=8,
        ),
    ),
)

_KAFKA = Row(
    "Kafka",
    (
        Figure(
            title="Partitions offline",
            description="Partitions without a leader. Any: see the runbook KafkaOfflinePartitions.",
            unit=units.NoUnit,
            asks=(Ask("max(kafka_controller_offline_partitions)", "offline"),),
            limits=Limits(1, 1.5),
            width=6,
        ),
        Figure(
            title="Under-replicated",
            description="Partitions with fewer copies than they should have. Always 0 on a single broker.",
            unit=units.NoUnit,
            asks=(Ask("sum(kafka_server_under_replicated_partitions)", "partitions"),),
            limits=Limits(1, 1.5),
            width=6,
        ),
        Figure(
            title="Controllers",
            description="Nodes that lead the cluster's metadata: one, always.",
            unit=units.NoUnit,
            asks=(Ask("sum(kafka_controller_active)", "active"),),
            width=6,
        ),
        Figure(
            title="Heap in use",
            description="Share of the broker's heap.",
            unit=units.PercentUnit,
            asks=(
                Ask(
                    'max(jvm_memory_used_bytes{job="kafka", area="heap"} '
                    '/ jvm_memory_max_bytes{job="kafka", area="heap"})',
                    "heap",
                ),
            ),
            limits=Limits(0.9, 0.97),
            width=6,
        ),
        Course(
            title="Records that come in",
            description="By topic, as producers write them.",
            unit=units.RecordsPerSecond,
            asks=(
                Ask(
                    'sum by (topic) (rate(kafka_topic_records_in_total{topic!~"__.+"}[$__rate_interval]))', "{{topic}}"
                ),
            ),
        ),
        Course(
            title="Bytes in and out",
            description="What producers write and readers fetch.",
            unit=units.BytesPerSecondIEC,
            asks=(
                Ask(
                    'sum by (topic, direction) (rate(kafka_topic_bytes_total{topic!~"__.+"}[$__rate_interval]))',
                    "{{topic}} {{direction}}",
                ),
            ),
        ),
        Course(
            title="On disk by topic",
            description="What retention has left.",
            unit=units.BytesIEC,
            asks=(Ask('sum by (topic) (kafka_log_size_bytes{topic!~"__.+"})', "{{topic}}"),),
        ),
        Course(
            title="Time to serve a request",
            description="The slowest of a hundred. A fetch waits on purpose while there is nothing new.",
            unit=units.Seconds,
            asks=(Ask('max by (request) (kafka_request_seconds{percentile="99"})', "{{request}}"),),
        ),
    ),
)

_OBJECT_STORE = Row(
    "Object store",
    (
        Figure(
            title="Free",
            description="Share of the object store's space; see the runbook ObjectStoreFilling.",
            unit=units.PercentUnit,
            asks=(
                Ask(
                    "max(minio_cluster_capacity_usable_free_bytes) / max(minio_cluster_capacity_usable_total_bytes)",
                    "free",
                ),
            ),
            limits=Limits(0.1, 0.03),
            width=6,
            height=8,
        ),
        Figure(
            title="Drives offline",
            description="Any: see the runbook ObjectStoreOffline.",
            unit=units.NoUnit,
            asks=(Ask("max(minio_cluster_drive_offline_total)", "offline"),),
            limits=Limits(1, 1.5),
            width=6,
            height=8,
        ),
        Course(
            title="Requests",
            description="By S3 operation.",
            unit=units.RequestsPerSecond,
            asks=(Ask("sum by (api) (rate(minio_s3_requests_total[$__rate_interval]))", "{{api}}"),),
        ),
        Course(
            title="Bytes in and out",
            description="S3 traffic.",
            unit=units.BytesPerSecondIEC,
            asks=(
                Ask("sum(rate(minio_s3_traffic_received_bytes[$__rate_interval]))", "in"),
                Ask("sum(rate(minio_s3_traffic_sent_bytes[$__rate_interval]))", "out"),
            ),
        ),
        Course(
            title="Requests refused",
            description="Wrong key or signature: a service has the wrong secret, or its clock is wrong.",
            unit=units.RequestsPerSecond,
            asks=(Ask("sum(rate(minio_s3_requests_rejected_auth_total[$__rate_interval]))", "refused"),),
        ),
    ),
)

_SPARK = Row(
    "Spark",
    (
        Figure(
            title="Workers",
            description="Workers that the master knows. None: see the runbook SparkHasNoWorkers.",
            unit=units.NoUnit,
            asks=(Ask("max(metrics_master_aliveWorkers_Value)", "alive"),),
            limits=Limits(1, 0.5),
            width=6,
            height=8,
        ),
        Figure(
            title="Applications waiting",
            description="Applications that have no cores. One that waits for long needs another worker.",
            unit=units.NoUnit,
            asks=(Ask("max(metrics_master_waitingApps_Value)", "waiting"),),
            limits=Limits(1, 2),
            width=6,
            height=8,
        ),
        Course(
            title="Cores",
            description="Of all workers.",
            unit=units.NoUnit,
            asks=(
                Ask("sum(metrics_worker_coresUsed_Value)", "used"),
                Ask("sum(metrics_worker_coresFree_Value)", "free"),
            ),
        ),
        Course(
            title="Workers' memory",
            description="What executors may take, of all workers.",
            unit=units.Mebibytes,
            asks=(
                Ask("sum(metrics_worker_memUsed_MB_Value)", "given out"),
                Ask("sum(metrics_worker_memFree_MB_Value)", "free"),
            ),
        ),
        Course(
            title="Heap of master and workers",
            description="Share in use by Spark's own daemons; tasks run in executors, which are not in here.",
            unit=units.PercentUnit,
            asks=(
                Ask(
                    "max by (job, instance) (metrics_jvm_heap_used_Value / metrics_jvm_heap_max_Value)", "{{instance}}"
                ),
            ),
        ),
    ),
)

_TRINO_AND_REGISTRY = Row(
    "Trino and the registry",
    (
        Course(
            title="Trino's queries",
            description="Running and waiting. Waiting ones that stay need more memory or fewer users.",
            unit=units.NoUnit,
            asks=(
                Ask("sum(trino_execution_name_QueryManager_RunningQueries)", "running"),
                Ask("sum(trino_execution_name_QueryManager_QueuedQueries)", "waiting"),
            ),
            width=8,
        ),
        Course(
            title="Trino's failures",
            description="In five minutes. user: the statement is wrong. external: a table or the object store is.",
            unit=units.Short,
            asks=(
                Ask("sum(increase(trino_execution_name_QueryManager_UserErrorFailures[5m]))", "user"),
                Ask("sum(increase(trino_execution_name_QueryManager_ExternalFailures[5m]))", "external"),
                Ask("sum(increase(trino_execution_name_QueryManager_InternalFailures[5m]))", "internal"),
                Ask("sum(increase(trino_execution_name_QueryManager_InsufficientResourcesFailures[5m]))", "memory"),
            ),
            width=8,
        ),
        Course(
            title="Trino's memory",
            description="Share of what queries may have together.",
            unit=units.PercentUnit,
            asks=(
                Ask(
                    "max(trino_memory_type_MemoryPool_name_general_ReservedBytes "
                    "/ trino_memory_type_MemoryPool_name_general_MaxBytes)",
                    "reserved",
                ),
            ),
            width=8,
        ),
        Course(
            title="The registry's requests",
            description="By class of answer. A 404 for a schema id is a producer with a registry of its own.",
            unit=units.RequestsPerSecond,
            asks=(
                Ask(
                    "sum by (status_code_group) (rate(rest_requests_seconds_count[$__rate_interval]))",
                    "{{status_code_group}}",
                ),
            ),
        ),
        Course(
            title="The registry's connections to its database",
            description="In use, and threads that wait for one. Any that wait for long: PostgreSQL is stuck.",
            unit=units.NoUnit,
            asks=(
                Ask('sum(agroal_active_count{job="registry"})', "in use"),
                Ask('sum(agroal_awaiting_count{job="registry"})', "waiting"),
            ),
        ),
    ),
)

_MONITORING = Row(
    "Does the monitoring work?",
    (
        Course(
            title="Notifications",
            description="What Alertmanager tells the receiver, and what fails; see the runbook AlertsNotDelivered.",
            unit=units.OpsPerMinute,
            asks=(
                Ask("60 * sum(rate(alertmanager_notifications_total[5m]))", "sent"),
                Ask("60 * sum(rate(alertmanager_notifications_failed_total[5m]))", "failed"),
                Ask("60 * sum(rate(prometheus_notifications_dropped_total[5m]))", "never reached Alertmanager"),
            ),
        ),
        Course(
            title="Series",
            description="What Prometheus keeps in memory. A climb without new games or tables is a label gone wild.",
            unit=units.Short,
            asks=(Ask("max(prometheus_tsdb_head_series)", "series"),),
        ),
    ),
)

SERVICES = Page(
    uid="gamelake-services",
    title="Services",
    description="Everything that the streams and the tables stand on.",
    variables=(),
    rows=(_UP, _MACHINES, _KAFKA, _OBJECT_STORE, _SPARK, _TRINO_AND_REGISTRY, _MONITORING),
)
