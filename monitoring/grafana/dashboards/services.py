"""Services, for operators: Kafka, object store, Spark, Trino, registry, machines, and the monitoring itself."""

from grafana_foundation_sdk.models import units

from monitoring.grafana.dashboards.shared import UP, alert_history, firing_alerts, responding_services
from monitoring.grafana.page import Page, Row
from monitoring.grafana.panels import DURATION, MOST_SERIES, Column, Query, Stat, Table, Thresholds, TimeSeries
from monitoring.grafana.promql import age, top, top_rates

_STARTED = "process_start_time_seconds or minio_node_process_starttime_seconds"
_MEMORY = "process_resident_memory_bytes or minio_node_process_resident_memory_bytes or gamelake_ingest_memory_bytes"

_UP = Row(
    "Is everything up, and stays up?",
    (
        Table(
            title="Services",
            description=(
                "The service that started most often comes first; one that restarts every minute can be up at each "
                "scrape. Outages: how often it stopped responding. See the runbook TargetDown. Memory: of the process; "
                "of the container with all its processes where the service reports it."
            ),
            label="job",
            columns=(
                Column("Now", units.NoUnit, "min by (job) (up)", words=UP),
                Column(
                    "Starts in 1 h",
                    units.NoUnit,
                    "sum by (job) (changes(process_start_time_seconds[1h]) "
                    "or changes(minio_node_process_starttime_seconds[1h]))",
                    Thresholds(1, 3),
                ),
                Column("Outages in 1 h", units.NoUnit, "sum by (job) (resets(up[1h]))", Thresholds(1, 3)),
                Column("Runs for", DURATION, age(f"max by (job) ({_STARTED})")),
                Column("Memory", units.BytesIEC, f"sum by (job) ({_MEMORY})"),
                Column("Container", units.BytesIEC, "max by (job) (gamelake_container_memory_bytes)"),
                Column(
                    "Share of limit",
                    units.PercentUnit,
                    "max by (job) (gamelake_container_memory_bytes / gamelake_container_memory_limit_bytes)",
                    Thresholds(0.9, 0.97),
                ),
                Column("Scrape", units.Seconds, "max by (job) (scrape_duration_seconds)", Thresholds(2, 4)),
            ),
            sort="Starts in 1 h",
            height=19,
        ),
        responding_services(),
        TimeSeries(
            title="Starts of services",
            description="Starts in an hour, the ten services with the most. See the runbook ServiceRestartsOften.",
            unit=units.NoUnit,
            queries=(
                Query(
                    "sum by (job) (changes(process_start_time_seconds[1h])) and on (job) "
                    f"topk({MOST_SERIES}, sum by (job) (changes(process_start_time_seconds[1h] @ end())))",
                    "{{job}}",
                ),
            ),
            thresholds=Thresholds(1, 3),
            height=13,
        ),
        firing_alerts(width=16),
        Stat(
            title="Certificates expire in",
            description="The first of those that ports serve and that were issued. See the runbook CertificateExpires.",
            unit=DURATION,
            queries=(
                Query(
                    "min((probe_ssl_earliest_cert_expiry or gamelake_certificate_expiry_timestamp_seconds"
                    " or gamelake_certificate_issued_expiry_timestamp_seconds) > 0) - time()",
                    "first",
                ),
            ),
            thresholds=Thresholds(30 * 86_400, 21 * 86_400),
            width=8,
            height=7,
        ),
        alert_history(width=24),
    ),
)

_MACHINES = Row(
    "Do the machines have enough resources?",
    (
        TimeSeries(
            title="CPU in use",
            description="Share of all cores.",
            unit=units.PercentUnit,
            queries=(
                Query(
                    '1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[$__rate_interval]))',
                    "{{instance}}",
                ),
            ),
            width=8,
        ),
        TimeSeries(
            title="Memory available",
            description="Share that a process could still get. Below 10 %: see the runbook HostMemoryLow.",
            unit=units.PercentUnit,
            queries=(
                Query(
                    "min by (instance) (node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)", "{{instance}}"
                ),
            ),
            thresholds=Thresholds(0.2, 0.1),
            width=8,
        ),
        TimeSeries(
            title="Disk free",
            description=(
                "Share of each disk. One of them has the data of all containers; see the runbook HostDiskFilling."
            ),
            unit=units.PercentUnit,
            queries=(Query("gamelake:host_disk_free:ratio", "{{instance}} {{device}}"),),
            thresholds=Thresholds(0.1, 0.03),
            width=8,
        ),
    ),
)

_KAFKA = Row(
    "Kafka",
    (
        Stat(
            title="Partitions offline",
            description="Partitions without a leader. More than 0: see the runbook KafkaOfflinePartitions.",
            unit=units.NoUnit,
            queries=(Query("max(kafka_controller_offline_partitions)", "offline"),),
            thresholds=Thresholds(1, 1.5),
            width=6,
        ),
        Stat(
            title="Under-replicated",
            description="Partitions with too few in-sync replicas. Always 0 on a single broker.",
            unit=units.NoUnit,
            queries=(Query("sum(kafka_server_under_replicated_partitions)", "partitions"),),
            thresholds=Thresholds(1, 1.5),
            width=6,
        ),
        Stat(
            title="Controllers",
            description="Nodes that lead the cluster's metadata: always one.",
            unit=units.NoUnit,
            queries=(Query("sum(kafka_controller_active)", "active"),),
            width=6,
        ),
        Stat(
            title="Heap in use",
            description="Share of the broker's heap.",
            unit=units.PercentUnit,
            queries=(
                Query(
                    'max(jvm_memory_used_bytes{job="kafka", area="heap"} '
                    '/ jvm_memory_max_bytes{job="kafka", area="heap"})',
                    "heap",
                ),
            ),
            thresholds=Thresholds(0.9, 0.97),
            width=6,
        ),
        TimeSeries(
            title="Records in",
            description="By topic, as producers write them.",
            unit=units.RecordsPerSecond,
            queries=(
                Query(
                    top_rates(MOST_SERIES, "topic", 'kafka_topic_records_in_total{topic!~"__.+"}'),
                    "{{topic}}",
                ),
            ),
        ),
        TimeSeries(
            title="Bytes in and out",
            description="Bytes that producers write and consumers fetch.",
            unit=units.BytesPerSecondIEC,
            queries=(
                Query(
                    top_rates(MOST_SERIES, "topic, direction", 'kafka_topic_bytes_total{topic!~"__.+"}'),
                    "{{topic}} {{direction}}",
                ),
            ),
        ),
        TimeSeries(
            title="On disk by topic",
            description="Size of the topics' logs after retention.",
            unit=units.BytesIEC,
            queries=(
                Query(top(MOST_SERIES, "topic", 'sum by (topic) (kafka_log_size_bytes{topic!~"__.+"})'), "{{topic}}"),
            ),
        ),
        TimeSeries(
            title="Request duration",
            description="99th percentile. A fetch waits by design while there are no new records.",
            unit=units.Seconds,
            queries=(Query('max by (request) (kafka_request_seconds{percentile="99"})', "{{request}}"),),
        ),
    ),
)

_OBJECT_STORE = Row(
    "Object store",
    (
        Stat(
            title="Free",
            description="Share of the object store's space; see the runbook ObjectStoreFilling.",
            unit=units.PercentUnit,
            queries=(
                Query(
                    "max(minio_cluster_capacity_usable_free_bytes) / max(minio_cluster_capacity_usable_total_bytes)",
                    "free",
                ),
            ),
            thresholds=Thresholds(0.1, 0.03),
            width=6,
            height=8,
        ),
        Stat(
            title="Drives offline",
            description="More than 0: see the runbook ObjectStoreOffline.",
            unit=units.NoUnit,
            queries=(Query("max(minio_cluster_drive_offline_total)", "offline"),),
            thresholds=Thresholds(1, 1.5),
            width=6,
            height=8,
        ),
        TimeSeries(
            title="Requests",
            description="By S3 operation, the ten most frequent.",
            unit=units.RequestsPerSecond,
            queries=(
                Query(
                    "sum by (api) (rate(minio_s3_requests_total[$__rate_interval])) and on (api) "
                    f"topk({MOST_SERIES}, sum by (api) (rate(minio_s3_requests_total[$__range] @ end())))",
                    "{{api}}",
                ),
            ),
        ),
        TimeSeries(
            title="Bytes in and out",
            description="S3 traffic.",
            unit=units.BytesPerSecondIEC,
            queries=(
                Query("sum(rate(minio_s3_traffic_received_bytes_total[$__rate_interval]))", "in"),
                Query("sum(rate(minio_s3_traffic_sent_bytes_total[$__rate_interval]))", "out"),
            ),
        ),
        TimeSeries(
            title="Requests rejected",
            description="Wrong key or signature: a service has the wrong secret, or its clock is wrong.",
            unit=units.RequestsPerSecond,
            queries=(Query("sum(rate(minio_s3_requests_rejected_auth_total[$__rate_interval]))", "refused"),),
        ),
    ),
)

_SPARK = Row(
    "Spark",
    (
        Stat(
            title="Workers",
            description="Workers that are registered with the master. 0: see the runbook SparkHasNoWorkers.",
            unit=units.NoUnit,
            queries=(Query("max(metrics_master_aliveWorkers_Value)", "alive"),),
            thresholds=Thresholds(1, 0.5),
            width=6,
            height=8,
        ),
        Stat(
            title="Applications waiting",
            description="Applications without cores. One that waits for long needs another worker.",
            unit=units.NoUnit,
            queries=(Query("max(metrics_master_waitingApps_Value)", "waiting"),),
            thresholds=Thresholds(1, 2),
            width=6,
            height=8,
        ),
        TimeSeries(
            title="Cores",
            description="The sum of all workers.",
            unit=units.NoUnit,
            queries=(
                Query("sum(metrics_worker_coresUsed_Value)", "used"),
                Query("sum(metrics_worker_coresFree_Value)", "free"),
            ),
        ),
        TimeSeries(
            title="Workers' memory",
            description="Memory for executors, of all workers.",
            unit=units.Mebibytes,
            queries=(
                Query("sum(metrics_worker_memUsed_MB_Value)", "given out"),
                Query("sum(metrics_worker_memFree_MB_Value)", "free"),
            ),
        ),
        TimeSeries(
            title="Heap of master and workers",
            description="Share in use by Spark's own daemons; tasks run in executors, which are not included.",
            unit=units.PercentUnit,
            thresholds=Thresholds(0.9, 0.97),
            queries=(
                Query(
                    "max by (job, instance) (metrics_jvm_heap_used_Value / metrics_jvm_heap_max_Value)", "{{instance}}"
                ),
            ),
        ),
    ),
)

_TRINO_AND_REGISTRY = Row(
    "Trino and the registry",
    (
        TimeSeries(
            title="Trino's queries",
            description="Running and queued. Queries that stay queued need more memory or fewer users.",
            unit=units.NoUnit,
            queries=(
                Query("sum(trino_execution_name_QueryManager_RunningQueries)", "running"),
                Query("sum(trino_execution_name_QueryManager_QueuedQueries)", "waiting"),
            ),
            width=8,
        ),
        TimeSeries(
            title="Trino's failures",
            description="In five minutes. user: the statement is wrong. external: a table or the object store failed.",
            unit=units.Short,
            queries=(
                Query("sum(increase(trino_execution_name_QueryManager_UserErrorFailures_total[5m]))", "user"),
                Query("sum(increase(trino_execution_name_QueryManager_ExternalFailures_total[5m]))", "external"),
                Query("sum(increase(trino_execution_name_QueryManager_InternalFailures_total[5m]))", "internal"),
                Query(
                    "sum(increase(trino_execution_name_QueryManager_InsufficientResourcesFailures_total[5m]))", "memory"
                ),
            ),
            width=8,
        ),
        TimeSeries(
            title="Trino's memory",
            description="Share of the memory for all queries.",
            unit=units.PercentUnit,
            thresholds=Thresholds(0.8, 0.95),
            queries=(
                Query(
                    "max(trino_memory_type_MemoryPool_name_general_ReservedBytes "
                    "/ trino_memory_type_MemoryPool_name_general_MaxBytes)",
                    "reserved",
                ),
            ),
            width=8,
        ),
        TimeSeries(
            title="The registry's requests",
            description="By class of HTTP status. A 404 for a schema id is a producer with another registry.",
            unit=units.RequestsPerSecond,
            queries=(
                Query(
                    "sum by (status_code_group) (rate(rest_requests_seconds_count[$__rate_interval]))",
                    "{{status_code_group}}",
                ),
            ),
        ),
        TimeSeries(
            title="The registry's connections to its database",
            description="In use, and threads that wait for one. Long waits: PostgreSQL is stuck.",
            unit=units.NoUnit,
            queries=(
                Query('sum(agroal_active_count{job="registry"})', "in use"),
                Query('sum(agroal_awaiting_count{job="registry"})', "waiting"),
            ),
        ),
    ),
)

_AUDIT = Row(
    "Is the audit complete?",
    (
        TimeSeries(
            title="Audit: offsets behind",
            description="Records of queries and support calls that their table has not; see the runbook AuditBehind.",
            unit=units.Short,
            queries=(Query("sum by (table) (gamelake_audit_offsets_behind)", "{{table}}"),),
            width=6,
        ),
        TimeSeries(
            title="Audit: rows",
            description="Two for each query: its begin and its end. Unreadable ones are kept as text.",
            unit=units.Short,
            queries=(
                Query("sum by (table) (rate(gamelake_audit_rows_total[$__rate_interval]))", "{{table}}"),
                Query(
                    "sum by (table) (rate(gamelake_audit_unreadable_total[$__rate_interval]))", "{{table}}, unreadable"
                ),
            ),
            width=6,
        ),
        TimeSeries(
            title="Audit: records lost",
            description="Deleted by Kafka before they were copied; see the runbook AuditRecordsLost.",
            thresholds=Thresholds(1, 1),
            unit=units.Short,
            queries=(Query("sum by (table) (gamelake_audit_lost_total)", "{{table}}"),),
            width=6,
        ),
        TimeSeries(
            title="Audit: last complete, last maintained",
            description="Time since the table had all records of its topic, and since old days were deleted.",
            unit=DURATION,
            queries=(
                Query(age("min by (table) (gamelake_audit_last_complete_timestamp_seconds)"), "{{table}}"),
                Query(
                    age("min by (table) (gamelake_audit_last_maintenance_timestamp_seconds)"),
                    "{{table}}, maintained",
                ),
            ),
            width=6,
        ),
    ),
)

_PORTAL = Row(
    "Is the portal used, and quick?",
    (
        TimeSeries(
            title="Portal: responses",
            description="By status. 421: a page of another site; 502: a question that failed.",
            unit=units.OpsPerMinute,
            queries=(
                Query("60 * sum by (status) (rate(gamelake_portal_responses_total[$__rate_interval]))", "{{status}}"),
            ),
            width=8,
        ),
        TimeSeries(
            title="Portal: questions",
            description="Those that were run in five minutes. busy: another question ran; failed: the page says why.",
            unit=units.Short,
            queries=(Query("sum by (outcome) (increase(gamelake_portal_questions_total[5m]))", "{{outcome}}"),),
            width=8,
        ),
        TimeSeries(
            title="Portal: how long questions run",
            description="The 90th percentile of an hour. After 30 seconds a question is stopped.",
            unit=units.Seconds,
            empty="no question in this hour",
            queries=(
                Query(
                    "histogram_quantile(0.9, sum by (le) (increase(gamelake_portal_question_seconds_bucket[1h])) > 0)",
                    "90 %",
                ),
            ),
            width=8,
        ),
    ),
)

_MONITORING = Row(
    "Does the monitoring work?",
    (
        TimeSeries(
            title="Notifications",
            description=(
                "Notifications that Alertmanager sends to the receiver, and failures; see the runbook "
                "AlertsNotDelivered."
            ),
            unit=units.OpsPerMinute,
            queries=(
                Query("60 * sum(rate(alertmanager_notifications_total[5m]))", "sent"),
                Query("60 * sum(rate(alertmanager_notifications_failed_total[5m]))", "failed"),
                Query("60 * sum(rate(prometheus_notifications_dropped_total[5m]))", "never reached Alertmanager"),
            ),
        ),
        TimeSeries(
            title="Series",
            description=(
                "Series that Prometheus keeps in memory. A rise without new games or tables is an unbounded label."
            ),
            unit=units.Short,
            queries=(Query("max(prometheus_tsdb_head_series)", "series"),),
        ),
    ),
)

SERVICES = Page(
    uid="gamelake-services",
    title="Services",
    description="The services that streams and tables depend on.",
    variables=(),
    rows=(_UP, _MACHINES, _KAFKA, _OBJECT_STORE, _SPARK, _TRINO_AND_REGISTRY, _AUDIT, _PORTAL, _MONITORING),
)
