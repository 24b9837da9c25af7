"""Pipeline, for developers: throughput, the phases of a batch, commits and files."""

from grafana_foundation_sdk.models import units

from monitoring.grafana.page import Page, Row, Variable
from monitoring.grafana.panels import Query, Stack, TimeSeries

_THROUGHPUT = Row(
    "What is the throughput?",
    (
        TimeSeries(
            title="Records",
            description="Kafka records in batches that are committed to all their tables.",
            unit=units.RecordsPerSecond,
            queries=(
                Query(
                    'sum by (query) (rate(gamelake_stream_records_total{query=~"$query"}[$__rate_interval]))',
                    "{{query}}",
                ),
            ),
        ),
        TimeSeries(
            title="Table by layer",
            description=(
                "Bronze has each record once; the other layers, duplicates and dropped rows together have the "
                "same number."
            ),
            unit=units.RowsPerSecond,
            queries=(
                Query(
                    'sum by (layer) (rate(gamelake_stream_rows_total{query=~"$query"}[$__rate_interval]))', "{{layer}}"
                ),
            ),
        ),
        TimeSeries(
            title="Dead letters by reason",
            description=(
                "Records that can't be decoded or routed; docs/dead-letters.md explains each reason and its remedy."
            ),
            unit=units.RecordsPerSecond,
            queries=(
                Query(
                    'sum by (reason) (rate(gamelake_stream_dead_letters_total{query=~"$query"}[$__rate_interval]))',
                    "{{reason}}",
                ),
            ),
            stack=Stack.NORMAL,
        ),
        TimeSeries(
            title="Duplicates by game",
            description="Events that were sent again within the deduplication window; silver has each of them once.",
            unit=units.RecordsPerSecond,
            queries=(
                Query(
                    "topk(12, sum by (game) "
                    '(rate(gamelake_stream_duplicates_total{query=~"$query"}[$__rate_interval])) > 0)',
                    "{{game}}",
                ),
            ),
            stack=Stack.NORMAL,
        ),
        TimeSeries(
            title="Table by table",
            description="Table that batches add, the twelve busiest tables.",
            unit=units.RowsPerSecond,
            queries=(
                Query(
                    "topk(12, sum by (table) "
                    '(rate(gamelake_stream_table_rows_total{query=~"$query", table=~"$table"}[$__rate_interval])))',
                    "{{table}}",
                ),
            ),
        ),
    ),
)

_RULES = Row(
    "Do the rows pass the quality rules?",
    (
        TimeSeries(
            title="Table that broke a rule",
            description="By rule and severity; quality/README.md explains what happens to such a row.",
            unit=units.RowsPerSecond,
            queries=(
                Query(
                    "topk(12, sum by (rule, severity) "
                    '(rate(gamelake_quality_rows_broken_total{query=~"$query"}[$__rate_interval])) > 0)',
                    "{{rule}} ({{severity}})",
                ),
            ),
            stack=Stack.NORMAL,
            width=8,
        ),
        TimeSeries(
            title="Share of a game's rows that a rule removes",
            description="Severity quarantine or drop; 1 % raises the alert RuleBroken.",
            unit=units.PercentUnit,
            queries=(
                Query(
                    "topk(12, sum by (query, game, rule) (rate(gamelake_quality_rows_broken_total"
                    '{query=~"$query", severity=~"quarantine|drop"}[10m])) / on (query, game) group_left () '
                    'sum by (query, game) (rate(gamelake_quality_rows_evaluated_total{query=~"$query"}[10m])) > 0)',
                    "{{game}}: {{rule}}",
                ),
            ),
            width=8,
        ),
        TimeSeries(
            title="Rejected rule files, unevaluated and dropped rows",
            description="Rejected: 1 while the rule files are invalid. Not evaluated, and dropped: rows per second.",
            unit=units.Short,
            queries=(
                Query('max by (query) (gamelake_quality_rules_rejected{query=~"$query"})', "{{query}} rejected"),
                Query(
                    "sum by (rule) (rate("
                    'gamelake_quality_rows_unevaluated_total{query=~"$query"}[$__rate_interval])) > 0',
                    "{{rule}} not evaluated",
                ),
                Query(
                    'sum by (rule) (rate(gamelake_quality_rows_dropped_total{query=~"$query"}[$__rate_interval])) > 0',
                    "{{rule}} dropped",
                ),
            ),
            width=8,
        ),
        TimeSeries(
            title="Age of the rules in force",
            description="A fall to 0 is a change of the rules, or a start of the driver.",
            unit=units.Seconds,
            queries=(
                Query(
                    "time() - max by (query, fingerprint) "
                    '(gamelake_quality_rules_since_timestamp_seconds{query=~"$query"})',
                    "{{query}} {{fingerprint}}",
                ),
            ),
            width=8,
        ),
    ),
)

_ARRIVALS = Row(
    "What happened to the files that arrived?",
    (
        TimeSeries(
            title="Files by outcome",
            description=(
                "Each version of an object once. None of a dead letter's events is in a table; "
                "docs/dead-letters.md lists the reasons."
            ),
            unit=units.Short,
            queries=(
                Query(
                    'sum by (outcome) (increase(gamelake_files_processed_total{query=~"$query"}[$__rate_interval]))',
                    "{{outcome}}",
                ),
            ),
            stack=Stack.NORMAL,
            width=8,
        ),
        TimeSeries(
            title="Ignored notifications",
            description="Repeated is normal: delivery is at least once.",
            unit=units.Short,
            queries=(
                Query(
                    "sum by (reason) (increase(gamelake_files_notifications_ignored_total"
                    '{query=~"$query"}[$__rate_interval])) > 0',
                    "{{reason}}",
                ),
            ),
            width=8,
        ),
        TimeSeries(
            title="Records from files",
            description="Records, and bytes as the files are stored.",
            unit=units.Short,
            queries=(
                Query('sum(rate(gamelake_files_records_total{query=~"$query"}[$__rate_interval]))', "records/s"),
                Query('sum(rate(gamelake_files_bytes_total{query=~"$query"}[$__rate_interval]))', "bytes/s"),
            ),
            width=8,
        ),
    ),
)

_DELIVERY = Row(
    "Does the topic's copy in files keep up?",
    (
        TimeSeries(
            title="Copy of the topic: offsets behind",
            description="Offsets that are in no delivered file. Unfinished files are a minute old at most by default.",
            unit=units.Short,
            queries=(Query("sum(gamelake_delivery_offsets_behind)", "offsets"),),
            width=8,
        ),
        TimeSeries(
            title="Copy of the topic: last delivery",
            description="Time since a file was delivered, or nothing was left to deliver.",
            unit=units.Seconds,
            queries=(Query("time() - max(gamelake_delivery_last_delivered_timestamp_seconds)", "ago"),),
            width=8,
        ),
        TimeSeries(
            title="Copy of the topic: unfinished files",
            description="Their memory; GAMELAKE_DELIVERY_BUFFER_MIB bounds it for each process.",
            unit=units.BytesIEC,
            queries=(Query("max(gamelake_delivery_buffered_bytes)", "memory"),),
            width=8,
        ),
    ),
)

_BATCHES = Row(
    "What does a batch spend its time on?",
    (
        TimeSeries(
            title="Batch duration",
            description="Median and 95th percentile. Triggers without records are not included.",
            unit=units.Seconds,
            queries=tuple(
                Query(
                    f"histogram_quantile({quantile}, sum by (query, le) (rate(gamelake_stream_batch_seconds_bucket"
                    '{query=~"$query", phase="trigger_execution"}[$__rate_interval])))',
                    f"{{{{query}}}} p{quantile * 100:.0f}",
                )
                for quantile in (0.5, 0.95)
            ),
        ),
        TimeSeries(
            title="Mean duration by phase",
            description=(
                "decide: the Spark job, its checks and the manifest. commit: the logs of all tables. Both are "
                "part of Spark's add_batch, which is not shown."
            ),
            unit=units.Seconds,
            queries=(
                Query(
                    "sum by (phase) (rate(gamelake_stream_batch_seconds_sum"
                    '{query=~"$query", phase!~"trigger_execution|add_batch"}[$__rate_interval]))'
                    " / sum by (phase) (rate(gamelake_stream_batch_seconds_count"
                    '{query=~"$query", phase!~"trigger_execution|add_batch"}[$__rate_interval]))',
                    "{{phase}}",
                ),
            ),
            stack=Stack.NORMAL,
        ),
        TimeSeries(
            title="Batches",
            description="Batches that had records. Many and small: many small files; raise GAMELAKE_TRIGGER_SECONDS.",
            unit=units.OpsPerMinute,
            queries=(
                Query(
                    "60 * sum by (query) (rate(gamelake_stream_batch_seconds_count"
                    '{query=~"$query", phase="trigger_execution"}[$__rate_interval]))',
                    "{{query}}",
                ),
            ),
        ),
        TimeSeries(
            title="Records per batch",
            description="Mean. At GAMELAKE_MAX_OFFSETS_PER_TRIGGER the query catches up at its configured maximum.",
            unit=units.Short,
            queries=(
                Query(
                    'sum by (query) (rate(gamelake_stream_records_total{query=~"$query"}[$__rate_interval])) '
                    "/ sum by (query) (rate(gamelake_stream_batch_seconds_count"
                    '{query=~"$query", phase="commit"}[$__rate_interval]))',
                    "{{query}}",
                ),
            ),
        ),
    ),
)

_COMMITS = Row(
    "Do commits succeed?",
    (
        TimeSeries(
            title="Commit duration",
            description="All tables of a batch, in parallel. It grows with the object store's latency.",
            unit=units.Seconds,
            queries=tuple(
                Query(
                    f"histogram_quantile({quantile}, sum by (query, le) (rate(gamelake_stream_batch_seconds_bucket"
                    '{query=~"$query", phase="commit"}[$__rate_interval])))',
                    f"{{{{query}}}} p{quantile * 100:.0f}",
                )
                for quantile in (0.5, 0.95)
            ),
            width=8,
        ),
        TimeSeries(
            title="Failed commits",
            description="Failed commits of one table, in five minutes. Each stops the query.",
            unit=units.Short,
            queries=(
                Query(
                    'sum by (query) (increase(gamelake_stream_commit_failures_total{query=~"$query"}[5m]))', "{{query}}"
                ),
            ),
            width=8,
        ),
        TimeSeries(
            title="Failed log checkpoints",
            description="Log checkpoints of tables that could not be written, in an hour. Rows are committed.",
            unit=units.Short,
            queries=(
                Query(
                    'sum by (query) (increase(gamelake_stream_log_checkpoint_failures_total{query=~"$query"}[1h]))',
                    "{{query}}",
                ),
            ),
            width=8,
        ),
        TimeSeries(
            title="Tables held back",
            description="Tables that refuse a batch. Their rows wait; all other tables go on.",
            unit=units.Short,
            queries=(Query('max by (query) (gamelake_stream_held_tables{query=~"$query"})', "{{query}}"),),
            width=8,
        ),
        TimeSeries(
            title="Forgotten events",
            description="Events of the deduplication window beyond its limit; sent again, they become second rows.",
            unit=units.Short,
            queries=(Query('max by (query) (gamelake_stream_dedup_forgotten_events{query=~"$query"})', "{{query}}"),),
            width=8,
        ),
        TimeSeries(
            title="Time since the query's start",
            description="A fall to 0 is a restart; several in a row raise the alert StreamRestartsOften.",
            unit=units.Seconds,
            queries=(
                Query(
                    'time() - (max by (query) (gamelake_stream_started_timestamp_seconds{query=~"$query"}) > 0)',
                    "{{query}}",
                ),
            ),
            width=8,
        ),
    ),
)

_FILES = Row(
    "What is written?",
    (
        TimeSeries(
            title="Bytes",
            description="Size of the data files added, the top twelve tables.",
            unit=units.BytesPerSecondIEC,
            queries=(
                Query(
                    "topk(12, sum by (table) "
                    '(rate(gamelake_stream_bytes_total{query=~"$query", table=~"$table"}[$__rate_interval])))',
                    "{{table}}",
                ),
            ),
            width=8,
        ),
        TimeSeries(
            title="Files",
            description="Data files added, the top twelve tables. Each batch adds at least one to each table.",
            unit=units.OpsPerMinute,
            queries=(
                Query(
                    "topk(12, 60 * sum by (table) "
                    '(rate(gamelake_stream_files_total{query=~"$query", table=~"$table"}[$__rate_interval])))',
                    "{{table}}",
                ),
            ),
            width=8,
        ),
        TimeSeries(
            title="Bytes per file",
            description=(
                "Mean size of the files added, the twelve smallest. Files from 16 MiB on are efficient to read."
            ),
            unit=units.BytesIEC,
            queries=(
                Query(
                    "bottomk(12, "
                    'sum by (table) (rate(gamelake_stream_bytes_total{query=~"$query", table=~"$table"}[5m])) '
                    '/ sum by (table) (rate(gamelake_stream_files_total{query=~"$query", table=~"$table"}[5m])))',
                    "{{table}}",
                ),
            ),
            width=8,
        ),
    ),
)

PIPELINE = Page(
    uid="gamelake-pipeline",
    title="Pipeline",
    description="Throughput of the streams, the phases of a batch, and the files that it writes.",
    variables=(Variable.QUERY, Variable.TABLE),
    rows=(_THROUGHPUT, _RULES, _ARRIVALS, _DELIVERY, _BATCHES, _COMMITS, _FILES),
)
