"""Maintenance, for operators: task runs and their results, pending compaction, and retentions."""

from grafana_foundation_sdk.models import units

from monitoring.grafana.page import Page, Row, Variable
from monitoring.grafana.panels import BarGauge, Column, Query, Stack, Stat, Thresholds, TimeSeries, table

_ALL = Row(
    "Is maintenance up to date?",
    (
        Stat(
            title="Failing tasks",
            description=(
                "Tasks whose last run failed; the scheduler retries them. See the runbook MaintenanceTaskFailing."
            ),
            unit=units.NoUnit,
            queries=(Query("count(gamelake_maintenance_task_consecutive_failures > 0) or vector(0)", "failing"),),
            thresholds=Thresholds(1, 2),
        ),
        Stat(
            title="Pending files",
            description="Small files of the selected tables that the next daily run compacts.",
            unit=units.Short,
            queries=(Query('sum(gamelake_maintenance_table_pending_files{table=~"$table"})', "files"),),
        ),
        Stat(
            title="Files left for Spark",
            description=(
                "Small files of the selected tables in partitions that are too large to be compacted without "
                "Spark: docs/operations.md has the command."
            ),
            unit=units.Short,
            queries=(Query('sum(gamelake_maintenance_table_skipped_files{table=~"$table"})', "files"),),
        ),
        Stat(
            title="Compacted in a day",
            description="Files that were replaced by fewer, larger ones in the last 24 hours.",
            unit=units.Short,
            queries=(Query("sum(increase(gamelake_maintenance_compacted_files_total[1d]))", "files"),),
        ),
        Stat(
            title="Deleted in a day",
            description="Size of the files that were deleted in the last 24 hours.",
            unit=units.BytesIEC,
            queries=(Query("sum(increase(gamelake_maintenance_deleted_bytes_total[1d]))", "bytes"),),
        ),
        Stat(
            title="Age of the measurement",
            description=(
                "Time since the scheduler last measured the tables: the values on this page are as old. See the "
                "runbook MaintenanceStalled."
            ),
            unit=units.Seconds,
            queries=(Query("time() - max(gamelake_maintenance_last_measurement_timestamp_seconds)", "ago"),),
            thresholds=Thresholds(900, 3600),
        ),
    ),
)

_TASKS = Row(
    "Does each task run?",
    (
        table(
            "Tasks",
            "The runs of each task, of all processes. See the runbook MaintenanceTaskLate.",
            "task",
            (
                Column(
                    "Since the last success",
                    units.Seconds,
                    "time() - max by (task) (gamelake_maintenance_task_last_success_timestamp_seconds)",
                ),
                Column(
                    "Next in",
                    units.Seconds,
                    "clamp_min(min by (task) (gamelake_maintenance_task_next_run_timestamp_seconds) - time(), 0)",
                ),
                Column("Every", units.Seconds, "max by (task) (gamelake_maintenance_task_interval_seconds)"),
                Column("Took", units.Seconds, "max by (task) (gamelake_maintenance_task_last_run_seconds)"),
                Column(
                    "Failures in a row", units.NoUnit, "max by (task) (gamelake_maintenance_task_consecutive_failures)"
                ),
            ),
        ),
        TimeSeries(
            title="Runs in a day",
            description="Runs that ended in 24 hours, by task and outcome.",
            unit=units.Short,
            queries=(
                Query(
                    "sum by (task, outcome) (increase(gamelake_maintenance_runs_total[1d]))",
                    "{{task}} {{outcome}}",
                ),
            ),
        ),
        TimeSeries(
            title="Files in a day",
            description="Files that tasks compacted and deleted in 24 hours.",
            unit=units.Short,
            queries=(
                Query(
                    "sum by (task) (increase(gamelake_maintenance_compacted_files_total[1d]))", "{{task}}: compacted"
                ),
                Query("sum by (task) (increase(gamelake_maintenance_deleted_files_total[1d]))", "{{task}}: deleted"),
            ),
        ),
        TimeSeries(
            title="Size in a day",
            description="Size of the files that tasks compacted and deleted in 24 hours.",
            unit=units.BytesIEC,
            queries=(
                Query(
                    "sum by (task) (increase(gamelake_maintenance_compacted_bytes_total[1d]))", "{{task}}: compacted"
                ),
                Query("sum by (task) (increase(gamelake_maintenance_deleted_bytes_total[1d]))", "{{task}}: deleted"),
            ),
        ),
    ),
)

_TABLES = Row(
    "Which tables need compaction?",
    (
        TimeSeries(
            title="Pending files",
            description=(
                "Small files that the next daily run compacts, the top twelve tables. A saw tooth with rising "
                "minima is a table that grows faster than it is compacted: see the runbook "
                "TableOutgrowsCompaction."
            ),
            unit=units.Short,
            queries=(
                Query(
                    'topk(12, max by (table) (gamelake_maintenance_table_pending_files{table=~"$table"}))',
                    "{{table}}",
                ),
            ),
            stack=Stack.NORMAL,
        ),
        TimeSeries(
            title="Size of pending files",
            description="Size of those files, the top twelve tables.",
            unit=units.BytesIEC,
            queries=(
                Query(
                    'topk(12, max by (table) (gamelake_maintenance_table_pending_bytes{table=~"$table"}))',
                    "{{table}}",
                ),
            ),
        ),
        BarGauge(
            title="Files left for Spark",
            description="Small files that only a run with Spark can compact, the top twelve tables.",
            unit=units.Short,
            queries=(
                Query(
                    'topk(12, max by (table) (gamelake_maintenance_table_skipped_files{table=~"$table"}))', "{{table}}"
                ),
            ),
        ),
    ),
)

_RETENTIONS = Row(
    "Are the retentions long enough?",
    (
        BarGauge(
            title="Retentions",
            description="How long data is kept, or promised, by the games contract and Kafka.",
            unit=units.Seconds,
            queries=(Query("max by (span) (gamelake_maintenance_retention_seconds)", "{{span}}"),),
        ),
        BarGauge(
            title="Sufficient retentions",
            description=(
                "1 if a retention is at least as long as another that depends on it. See the runbook "
                "RetentionsContradict."
            ),
            unit=units.NoUnit,
            queries=(
                Query(
                    "min by (longer, shorter) (gamelake_maintenance_retention_sufficient)",
                    "{{longer}} for {{shorter}}",
                ),
            ),
            thresholds=Thresholds(1, 0.5),
        ),
    ),
)

MAINTENANCE = Page(
    uid="gamelake-maintenance",
    title="Maintenance",
    description="Task runs and their results, tables that wait for compaction, and retentions.",
    variables=(Variable.TABLE,),
    rows=(_ALL, _TASKS, _TABLES, _RETENTIONS),
)
