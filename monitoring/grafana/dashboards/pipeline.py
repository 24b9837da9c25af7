"""Pipeline, for developers: throughput, the phases of a batch, commits and files."""

from grafana_foundation_sdk.models import units

from monitoring.grafana.dashboards.shared import mean_by_phase
from monitoring.grafana.page import Page, Row, Variable
from monitoring.grafana.panels import (
    DURATION,
    MOST_SERIES,
    Query,
    Rating,
    Stack,
    StateTimeline,
    Thresholds,
    TimeSeries,
    Word,
)
from monitoring.grafana.promql import age, quantile, top, top_rates

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
            title="Rows by layer",
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
                    top_rates(MOST_SERIES, "reason", 'gamelake_stream_dead_letters_total{query=~"$query"}'),
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
                    top_rates(MOST_SERIES, "game", 'gamelake_stream_duplicates_total{query=~"$query"}'),
                    "{{game}}",
                ),
            ),
            stack=Stack.NORMAL,
        ),
        TimeSeries(
            title="Rows by table",
            description="Rows that batches add, the ten busiest tables.",
            unit=units.RowsPerSecond,
            queries=(
                Query(
                    top_rates(
                        MOST_SERIES, "table", 'gamelake_stream_table_rows_total{query=~"$query", table=~"$table"}'
                    ),
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
            title="Rows that broke a rule",
            description="By rule and severity; quality/README.md explains what happens to such a row.",
            unit=units.RowsPerSecond,
            queries=(
                Query(
                    top_rates(MOST_SERIES, "rule, severity", 'gamelake_quality_rows_broken_total{query=~"$query"}'),
                    "{{rule}} ({{severity}})",
                ),
            ),
            stack=Stack.NORMAL,
            width=8,
        ),
        TimeSeries(
            title="Share of a game's rows that a rule removes",
            description="Severity quarantine or drop; from 1 % on: see the runbook RuleBroken.",
            unit=units.PercentUnit,
            queries=(
                Query(
                    top(
                        MOST_SERIES,
                        "query, game, rule",
                        "sum by (query, game, rule) (rate(gamelake_quality_rows_broken_total"
                        '{query=~"$query", severity=~"quarantine|drop"}[10m])) / on (query, game) group_left () '
                        '(sum by (query, game) (rate(gamelake_quality_rows_evaluated_total{query=~"$query"}[10m])) > 0)'
                        " > 0",
                    ),
                    "{{game}}: {{rule}}",
                ),
            ),
            thresholds=Thresholds(0.005, 0.01),
            empty="none",
            width=8,
        ),
        TimeSeries(
            title="Unevaluated and dropped rows",
            description="Rows that a rule could not evaluate, because a column has another type, and that it dropped.",
            unit=units.RowsPerSecond,
            queries=(
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
            empty="none",
            width=8,
        ),
        StateTimeline(
            title="Rule files",
            description=(
                "Whether the rule files are valid; else the last valid ones apply, see the runbook RulesRejected."
            ),
            unit=units.NoUnit,
            queries=(Query('max by (query) (gamelake_quality_rules_rejected{query=~"$query"})', "{{query}}"),),
            words=(Word(0, "valid"), Word(1, "rejected", Rating.BAD)),
        ),
        TimeSeries(
            title="Age of the rules in force",
            description="A fall to 0 is a change of the rules, or a start of the driver.",
            unit=DURATION,
            queries=(
                Query(
                    age(
                        'max by (query, fingerprint) (gamelake_quality_rules_since_timestamp_seconds{query=~"$query"})'
                    ),
                    "{{query}} {{fingerprint}}",
                ),
            ),
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
            empty="none",
        ),
        TimeSeries(
            title="Records from files",
            description="Records of the files that were processed.",
            unit=units.RecordsPerSecond,
            queries=(Query('sum(rate(gamelake_files_records_total{query=~"$query"}[$__rate_interval]))', "records"),),
        ),
        TimeSeries(
            title="Bytes from files",
            description="Bytes of the files that were processed, as they are stored.",
            unit=units.BytesPerSecondIEC,
            queries=(Query('sum(rate(gamelake_files_bytes_total{query=~"$query"}[$__rate_interval]))', "bytes"),),
        ),
        StateTimeline(
            title="Schema of files",
            description=(
                "Whether files are read by the newest schema, or it can't be used; see the runbook FileSchemaUnusable."
            ),
            unit=units.NoUnit,
            queries=(Query('max by (query) (gamelake_files_newest_schema_unusable{query=~"$query"})', "{{query}}"),),
            words=(Word(0, "newest"), Word(1, "older", Rating.BAD)),
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
            description=(
                "Time since a file was delivered, or nothing was left to deliver; see the runbook DeliveryStalled."
            ),
            unit=DURATION,
            queries=(Query(age("max(gamelake_delivery_last_delivered_timestamp_seconds)"), "ago"),),
            thresholds=Thresholds(300, 900),
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
                    quantile(
                        share,
                        "query, le",
                        'gamelake_stream_batch_seconds_bucket{query=~"$query", phase="trigger_execution"}',
                    ),
                    f"{{{{query}}}} p{share * 100:.0f}",
                )
                for share in (0.5, 0.95)
            ),
        ),
        TimeSeries(
            title="Mean duration by phase",
            description=(
                "decide: the Spark job, its checks and the manifest. commit: the logs of all tables. Both are "
                "part of Spark's add_batch, which is not shown."
            ),
            unit=units.Seconds,
            queries=(Query(mean_by_phase("10m"), "{{phase}}"),),
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
                    "/ (sum by (query) (rate(gamelake_stream_batch_seconds_count"
                    '{query=~"$query", phase="commit"}[$__rate_interval])) > 0)',
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
                    quantile(
                        share,
                        "query, le",
                        'gamelake_stream_batch_seconds_bucket{query=~"$query", phase="commit"}',
                    ),
                    f"{{{{query}}}} p{share * 100:.0f}",
                )
                for share in (0.5, 0.95)
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
            description="Tables that refuse a batch; all other tables continue. See the runbook TablesHeldBack.",
            thresholds=Thresholds(1, 1),
            unit=units.Short,
            queries=(Query('max by (query) (gamelake_stream_held_tables{query=~"$query"})', "{{query}}"),),
            width=8,
        ),
        TimeSeries(
            title="Forgotten events",
            description="Events of the deduplication window beyond its limit: see the runbook DedupWindowFull.",
            thresholds=Thresholds(1, 1),
            unit=units.Short,
            queries=(Query('max by (query) (gamelake_stream_dedup_forgotten_events{query=~"$query"})', "{{query}}"),),
            width=8,
        ),
        TimeSeries(
            title="Time since the query's start",
            description="A fall to 0 is a restart; several in a row are for the runbook StreamRestartsOften.",
            unit=DURATION,
            queries=(
                Query(
                    age('max by (query) (gamelake_stream_started_timestamp_seconds{query=~"$query"})'),
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
            description="Size of the data files added, the top ten tables.",
            unit=units.BytesPerSecondIEC,
            queries=(
                Query(
                    top_rates(MOST_SERIES, "table", 'gamelake_stream_bytes_total{query=~"$query", table=~"$table"}'),
                    "{{table}}",
                ),
            ),
            width=8,
        ),
        TimeSeries(
            title="Files",
            description="Data files added, the top ten tables. Each batch adds at least one to each table.",
            unit=units.OpsPerMinute,
            queries=(
                Query(
                    top_rates(
                        MOST_SERIES,
                        "table",
                        'gamelake_stream_files_total{query=~"$query", table=~"$table"}',
                        factor="60 * ",
                    ),
                    "{{table}}",
                ),
            ),
            width=8,
        ),
        TimeSeries(
            title="Bytes per file",
            description=("Mean size of the files added, the ten smallest. Files from 16 MiB on are efficient to read."),
            unit=units.BytesIEC,
            queries=(
                Query(
                    top(
                        MOST_SERIES,
                        "table",
                        'sum by (table) (rate(gamelake_stream_bytes_total{query=~"$query", table=~"$table"}[5m])) '
                        '/ (sum by (table) (rate(gamelake_stream_files_total{query=~"$query", table=~"$table"}[5m]))'
                        " > 0)",
                        least=True,
                    ),
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
