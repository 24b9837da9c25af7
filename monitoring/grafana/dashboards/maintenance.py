"""Maintenance, for operators: task runs and their results, pending compaction, and retentions."""

from grafana_foundation_sdk.models import units

from monitoring.grafana.page import Page, Row, Variable
from monitoring.grafana.panels import (
    DURATION,
    MOST_SERIES,
    BarGauge,
    Column,
    Query,
    Rating,
    Stack,
    Stat,
    Table,
    Thresholds,
    TimeSeries,
    Word,
)
from monitoring.grafana.promql import age, finite, top

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
            unit=DURATION,
            queries=(Query(age("max(gamelake_maintenance_last_measurement_timestamp_seconds)"), "ago"),),
            thresholds=Thresholds(900, 3600),
        ),
    ),
)

_TASKS = Row(
    "Does each task run?",
    (
        Table(
            title="Tasks",
            description="The runs of each task, of all processes. See the runbook MaintenanceTaskLate.",
            label="task",
            columns=(
                Column("Every", DURATION, "max by (task) (gamelake_maintenance_task_interval_seconds)"),
                Column(
                    "Since the last success",
                    DURATION,
                    age("max by (task) (gamelake_maintenance_task_last_success_timestamp_seconds)"),
                ),
                Column(
                    "Next in",
                    DURATION,
                    "clamp_min((min by (task) (gamelake_maintenance_task_next_run_timestamp_seconds) > 0) - time(), 0)",
                ),
                Column("Took", DURATION, "max by (task) (gamelake_maintenance_task_last_run_seconds)"),
                Column(
                    "Failures in a row",
                    units.NoUnit,
                    "max by (task) (gamelake_maintenance_task_consecutive_failures)",
                    Thresholds(1, 3),
                ),
            ),
            sort="Failures in a row",
            height=14,
        ),
        TimeSeries(
            title="Runs in a day",
            description="Runs that ended in 24 hours, by task and outcome, the ten most frequent.",
            unit=units.Short,
            queries=(
                Query(
                    top(
                        MOST_SERIES,
                        "task, outcome",
                        "sum by (task, outcome) (increase(gamelake_maintenance_runs_total[1d]))",
                    ),
                    "{{task}} {{outcome}}",
                ),
            ),
        ),
        TimeSeries(
            title="Files in a day",
            description="Files that tasks compacted and deleted in 24 hours, the top five tasks of each.",
            unit=units.Short,
            queries=(
                Query(
                    top(5, "task", "sum by (task) (increase(gamelake_maintenance_compacted_files_total[1d]))"),
                    "{{task}}: compacted",
                ),
                Query(
                    top(5, "task", "sum by (task) (increase(gamelake_maintenance_deleted_files_total[1d]))"),
                    "{{task}}: deleted",
                ),
            ),
        ),
        TimeSeries(
            title="Size in a day",
            description="Size of the files that tasks compacted and deleted in 24 hours, the top five tasks of each.",
            unit=units.BytesIEC,
            queries=(
                Query(
                    top(5, "task", "sum by (task) (increase(gamelake_maintenance_compacted_bytes_total[1d]))"),
                    "{{task}}: compacted",
                ),
                Query(
                    top(5, "task", "sum by (task) (increase(gamelake_maintenance_deleted_bytes_total[1d]))"),
                    "{{task}}: deleted",
                ),
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
                "Small files that the next daily run compacts, the top ten tables. A saw tooth with rising "
                "minima is a table that grows faster than it is compacted: see the runbook "
                "TableOutgrowsCompaction."
            ),
            unit=units.Short,
            queries=(
                Query(
                    top(
                        MOST_SERIES,
                        "table",
                        'max by (table) (gamelake_maintenance_table_pending_files{table=~"$table"})',
                    ),
                    "{{table}}",
                ),
            ),
            stack=Stack.NORMAL,
        ),
        TimeSeries(
            title="Size of pending files",
            description="Size of those files, the top ten tables.",
            unit=units.BytesIEC,
            queries=(
                Query(
                    top(
                        MOST_SERIES,
                        "table",
                        'max by (table) (gamelake_maintenance_table_pending_bytes{table=~"$table"})',
                    ),
                    "{{table}}",
                ),
            ),
        ),
        BarGauge(
            title="Files left for Spark",
            description="Small files that only a run with Spark can compact, the top ten tables.",
            unit=units.Short,
            queries=(
                Query(
                    'topk(10, max by (table) (gamelake_maintenance_table_skipped_files{table=~"$table"}))', "{{table}}"
                ),
            ),
        ),
    ),
)

_RETENTIONS = Row(
    "Are the retentions long enough?",
    (
        Table(
            title="Retentions",
            description="How long data is kept, or promised, by the games contract and Kafka.",
            label="span",
            columns=(
                Column(
                    "Kept for",
                    DURATION,
                    finite("max by (span) (gamelake_maintenance_retention_seconds)", "span"),
                    words=(Word(-1, "forever"),),
                ),
            ),
            sort="Kept for",
            width=12,
            height=9,
        ),
        Table(
            title="Sufficient retentions",
            description=(
                "Whether a retention is at least as long as another that depends on it. See the runbook "
                "RetentionsContradict."
            ),
            label="longer",
            columns=(
                Column(
                    "Sufficient",
                    units.NoUnit,
                    "min by (longer, shorter) (gamelake_maintenance_retention_sufficient)",
                    words=(Word(0, "no", Rating.BAD), Word(1, "yes")),
                ),
            ),
            more_labels=("shorter",),
            sort="Sufficient",
            smallest_first=True,
            width=12,
            height=9,
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
