"""Pipeline, for who makes it faster: throughput, the phases of a batch, commits and files."""

from grafana_foundation_sdk.models import units

from monitoring.grafana.page import Page, Row, Variable
from monitoring.grafana.panels import Ask, Course, Stack

_THROUGHPUT = Row(
    "How much goes through?",
    (
        Course(
            title="Records",
            description="Kafka records in batches that are committed to all their tables.",
            unit=units.RecordsPerSecond,
            asks=(
                Ask(
                    'sum by (query) (rate(gamelake_stream_records_total{query=~"$query"}[$__rate_interval]))',
                    "{{query}}",
                ),
            ),
        ),
        Course(
            title="Rows by layer",
            description="Bronze has each record once; the others, with duplicates and dropped rows, are as many.",
            unit=units.RowsPerSecond,
            asks=(
                Ask(
                    'sum by (layer) (rate(gamelake_stream_rows_total{query=~"$query"}[$__rate_interval]))', "{{layer}}"
                ),
            ),
        ),
        Course(
            title="Dead letters by reason",
            description="What can't be decoded or routed; docs/dead-letters.md explains each reason and its remedy.",
            unit=units.RecordsPerSecond,
            asks=(
                Ask(
                    'sum by (reason) (rate(gamelake_stream_dead_letters_total{query=~"$query"}[$__rate_interval]))',
                    "{{reason}}",
                ),
            ),
            stack=Stack.NORMAL,
        ),
        Course(
            title="Duplicates by game",
            description="Events that were sent again within the dedup window; silver has each of them once.",
            unit=units.RecordsPerSecond,
            asks=(
                Ask(
                    "topk(12, sum by (game) "
                    '(rate(gamelake_stream_duplicates_total{query=~"$query"}[$__rate_interval])) > 0)',
                    "{{game}}",
                ),
            ),
            stack=Stack.NORMAL,
        ),
        Course(
            title="Rows by table",
            description="Rows that batches add, the twelve busiest tables.",
            unit=units.RowsPerSecond,
            asks=(
                Ask(
                    "topk(12, sum by (table) "
                    '(rate(gamelake_stream_table_rows_total{query=~"$query", table=~"$table"}[$__rate_interval])))',
                    "{{table}}",
                ),
            ),
        ),
    ),
)

_RULES = Row(
    "Do the rows hold to the rules?",
    (
        Course(
            title="Rows that broke a rule",
            description="By rule and severity; quality/README.md says what becomes of such a row.",
            unit=units.RowsPerSecond,
            asks=(
                Ask(
                    "topk(12, sum by (rule, severity) "
                    '(rate(gamelake_quality_rows_broken_total{query=~"$query"}[$__rate_interval])) > 0)',
                    "{{rule}} ({{severity}})",
                ),
            ),
            stack=Stack.NORMAL,
            width=8,
        ),
        Course(
            title="Share of a game's rows that one rule sets aside",
            description="Of severity quarantine or drop; 1 % is the alert RuleBroken.",
            unit=units.PercentUnit,
            asks=(
                Ask(
                    "topk(12, sum by (query, game, rule) (rate(gamelake_quality_rows_broken_total"
                    '{query=~"$query", severity=~"quarantine|drop"}[10m])) / on (query, game) group_left () '
                    'sum by (query, game) (rate(gamelake_quality_rows_evaluated_total{query=~"$query"}[10m])) > 0)',
                    "{{game}}: {{rule}}",
                ),
            ),
            width=8,
        ),
        Course(
            title="Rules that are not what their files say, or can't judge",
            description="Refused: 1 while the files are broken. Not judged, and dropped: rows per second.",
            unit=units.Short,
            asks=(
                Ask('max by (query) (gamelake_quality_rules_rejected{query=~"$query"})', "{{query}} rejected"),
                Ask(
                    "sum by (rule) (rate("
                    'gamelake_quality_rows_unevaluated_total{query=~"$query"}[$__rate_interval])) > 0',
                    "{{rule}} not evaluated",
                ),
                Ask(
                    'sum by (rule) (rate(gamelake_quality_rows_dropped_total{query=~"$query"}[$__rate_interval])) > 0',
                    "{{rule}} dropped",
                ),
            ),
            width=8,
        ),
        Course(
            title="Age of the rules in force",
            description="A tooth that falls to 0 is a change of the rules, or the driver's start.",
            unit=units.Seconds,
            asks=(
                Ask(
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
    "What became of the files that arrived?",
    (
        Course(
            title="Files that were named",
            description="Each content once. A dead letter is a file that gave no event; docs/dead-letters.md says why.",
            unit=units.Short,
            asks=(
                Ask(
                    'sum by (outcome) (increase(gamelake_files_processed_total{query=~"$query"}[$__rate_interval]))',
                    "{{outcome}}",
                ),
            ),
            stack=Stack.NORMAL,
            width=8,
        ),
        Course(
            title="Notifications that led to nothing to read",
            description="Repeated is normal: they come at least once.",
            unit=units.Short,
            asks=(
                Ask(
                    "sum by (reason) (increase(gamelake_files_notifications_ignored_total"
                    '{query=~"$query"}[$__rate_interval])) > 0',
                    "{{reason}}",
                ),
            ),
            width=8,
        ),
        Course(
            title="Records out of files",
            description="Events and other rows; bytes as the files are stored.",
            unit=units.Short,
            asks=(
                Ask('sum(rate(gamelake_files_records_total{query=~"$query"}[$__rate_interval]))', "records/s"),
                Ask('sum(rate(gamelake_files_bytes_total{query=~"$query"}[$__rate_interval]))', "bytes/s"),
            ),
            width=8,
        ),
    ),
)

_BATCHES = Row(
    "What does a batch spend its time on?",
    (
        Course(
            title="A batch from end to end",
            description="Half of the batches, and all but one in twenty, take no longer. Empty triggers don't count.",
            unit=units.Seconds,
            asks=tuple(
                Ask(
                    f"histogram_quantile({quantile}, sum by (query, le) (rate(gamelake_stream_batch_seconds_bucket"
                    '{query=~"$query", phase="trigger_execution"}[$__rate_interval])))',
                    f"{{{{query}}}} p{quantile * 100:.0f}",
                )
                for quantile in (0.5, 0.95)
            ),
        ),
        Course(
            title="Mean time by phase",
            description=(
                "decide: the Spark job, its checks and the manifest. commit: all tables' logs. Both lie inside Spark's "
                "add_batch, which is left out here."
            ),
            unit=units.Seconds,
            asks=(
                Ask(
                    "sum by (phase) (rate(gamelake_stream_batch_seconds_sum"
                    '{query=~"$query", phase!~"trigger_execution|add_batch"}[$__rate_interval]))'
                    " / sum by (phase) (rate(gamelake_stream_batch_seconds_count"
                    '{query=~"$query", phase!~"trigger_execution|add_batch"}[$__rate_interval]))',
                    "{{phase}}",
                ),
            ),
            stack=Stack.NORMAL,
        ),
        Course(
            title="Batches",
            description="Batches that had records. Many and small: many small files; raise GAMELAKE_TRIGGER_SECONDS.",
            unit=units.OpsPerMinute,
            asks=(
                Ask(
                    "60 * sum by (query) (rate(gamelake_stream_batch_seconds_count"
                    '{query=~"$query", phase="trigger_execution"}[$__rate_interval]))',
                    "{{query}}",
                ),
            ),
        ),
        Course(
            title="Records per batch",
            description="Mean. At GAMELAKE_MAX_OFFSETS_PER_TRIGGER the query catches up as fast as it is allowed to.",
            unit=units.Short,
            asks=(
                Ask(
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
    "Do the commits hold?",
    (
        Course(
            title="Commit time",
            description="All tables of a batch together, in parallel. It grows with the object store's answers.",
            unit=units.Seconds,
            asks=tuple(
                Ask(
                    f"histogram_quantile({quantile}, sum by (query, le) (rate(gamelake_stream_batch_seconds_bucket"
                    '{query=~"$query", phase="commit"}[$__rate_interval])))',
                    f"{{{{query}}}} p{quantile * 100:.0f}",
                )
                for quantile in (0.5, 0.95)
            ),
            width=8,
        ),
        Course(
            title="Failed commits",
            description="Commits of one table that ended in an error, in five minutes. Each ends the query.",
            unit=units.Short,
            asks=(
                Ask(
                    'sum by (query) (increase(gamelake_stream_commit_failures_total{query=~"$query"}[5m]))', "{{query}}"
                ),
            ),
            width=8,
        ),
        Course(
            title="Since the query's start",
            description="A tooth that falls to 0 is a restart; several in a row are the alert StreamRestartsOften.",
            unit=units.Seconds,
            asks=(
                Ask(
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
        Course(
            title="Bytes",
            description="Size of the data files added, the twelve largest tables.",
            unit=units.BytesPerSecondIEC,
            asks=(
                Ask(
                    "topk(12, sum by (table) "
                    '(rate(gamelake_stream_bytes_total{query=~"$query", table=~"$table"}[$__rate_interval])))',
                    "{{table}}",
                ),
            ),
            width=8,
        ),
        Course(
            title="Files",
            description="Data files added, the twelve tables with most. Each batch adds at least one to each table.",
            unit=units.OpsPerMinute,
            asks=(
                Ask(
                    "topk(12, 60 * sum by (table) "
                    '(rate(gamelake_stream_files_total{query=~"$query", table=~"$table"}[$__rate_interval])))',
                    "{{table}}",
                ),
            ),
            width=8,
        ),
        Course(
            title="Bytes per file",
            description="Mean size of the files added, the twelve smallest. Readers like them from 16 MiB on.",
            unit=units.BytesIEC,
            asks=(
                Ask(
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
    description="What goes through the streams, what a batch spends its time on, and what it leaves in the tables.",
    variables=(Variable.QUERY, Variable.TABLE),
    rows=(_THROUGHPUT, _RULES, _ARRIVALS, _BATCHES, _COMMITS, _FILES),
)
