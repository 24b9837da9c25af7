"""Upkeep, for who runs the platform: does each round run, what does it do, what waits, and do the retentions fit?"""

from grafana_foundation_sdk.models import units

from monitoring.grafana.page import Page, Row, Variable
from monitoring.grafana.panels import Ask, Bars, Column, Course, Figure, Limits, Stack, rows

_ALL = Row(
    "Is the lakehouse kept up?",
    (
        Figure(
            title="Rounds that fail",
            description="Rounds whose last run did not end well; they are tried again. See the runbook "
            "MaintenanceTaskFailing.",
            unit=units.NoUnit,
            asks=(Ask("count(gamelake_maintenance_task_consecutive_failures > 0) or vector(0)", "failing"),),
            limits=Limits(1, 2),
        ),
        Figure(
            title="Files that wait",
            description="Small files of the chosen tables that the next daily round packs.",
            unit=units.Short,
            asks=(Ask('sum(gamelake_maintenance_table_pending_files{table=~"$table"})', "files"),),
        ),
        Figure(
            title="Left for Spark",
            description="Files of the chosen tables that could be fewer, and are too large to be packed without Spark: "
            "docs/operations.md says which command packs them.",
            unit=units.Short,
            asks=(Ask('sum(gamelake_maintenance_table_skipped_files{table=~"$table"})', "files"),),
        ),
        Figure(
            title="Packed in a day",
            description="Files that became fewer and larger ones in the last 24 hours.",
            unit=units.Short,
            asks=(Ask("sum(increase(gamelake_maintenance_compacted_files_total[1d]))", "files"),),
        ),
        Figure(
            title="Freed in a day",
            description="Size of the files that were deleted in the last 24 hours.",
            unit=units.BytesIEC,
            asks=(Ask("sum(increase(gamelake_maintenance_deleted_bytes_total[1d]))", "bytes"),),
        ),
        Figure(
            title="Looked",
            description="How long ago the job looked at the tables: so old is what waits here. See the runbook "
            "MaintenanceStalled.",
            unit=units.Seconds,
            asks=(Ask("time() - max(gamelake_maintenance_last_measurement_timestamp_seconds)", "ago"),),
            limits=Limits(900, 3600),
        ),
    ),
)

_ROUNDS = Row(
    "Does each round run?",
    (
        rows(
            "Rounds",
            "What is known of each round's runs, whoever made them. See the runbook MaintenanceTaskLate.",
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
        Course(
            title="Runs in a day",
            description="Runs that ended in 24 hours, by round and by how they ended.",
            unit=units.Short,
            asks=(
                Ask(
                    "sum by (task, outcome) (increase(gamelake_maintenance_runs_total[1d]))",
                    "{{task}} {{outcome}}",
                ),
            ),
        ),
        Course(
            title="Files in a day",
            description="Files that rounds packed and deleted in 24 hours.",
            unit=units.Short,
            asks=(
                Ask("sum by (task) (increase(gamelake_maintenance_compacted_files_total[1d]))", "{{task}}: packed"),
                Ask("sum by (task) (increase(gamelake_maintenance_deleted_files_total[1d]))", "{{task}}: deleted"),
            ),
        ),
        Course(
            title="Size in a day",
            description="Size of what rounds packed, before, and of what they deleted in 24 hours.",
            unit=units.BytesIEC,
            asks=(
                Ask("sum by (task) (increase(gamelake_maintenance_compacted_bytes_total[1d]))", "{{task}}: packed"),
                Ask("sum by (task) (increase(gamelake_maintenance_deleted_bytes_total[1d]))", "{{task}}: deleted"),
            ),
        ),
    ),
)

_TABLES = Row(
    "Which tables wait?",
    (
        Course(
            title="Files that wait",
            description="Small files that the next daily round packs, the twelve tables with most. A saw tooth whose "
            "lowest points rise is a table that grows faster than it is packed: see the runbook "
            "TableOutgrowsCompaction.",
            unit=units.Short,
            asks=(
                Ask(
                    'topk(12, max by (table) (gamelake_maintenance_table_pending_files{table=~"$table"}))',
                    "{{table}}",
                ),
            ),
            stack=Stack.NORMAL,
        ),
        Course(
            title="Size of what waits",
            description="What those files take, the twelve tables with most.",
            unit=units.BytesIEC,
            asks=(
                Ask(
                    'topk(12, max by (table) (gamelake_maintenance_table_pending_bytes{table=~"$table"}))',
                    "{{table}}",
                ),
            ),
        ),
        Bars(
            title="Left for Spark",
            description="Files that only a round with Spark could pack, the twelve tables with most.",
            unit=units.Short,
            asks=(
                Ask(
                    'topk(12, max by (table) (gamelake_maintenance_table_skipped_files{table=~"$table"}))', "{{table}}"
                ),
            ),
        ),
    ),
)

_RETENTIONS = Row(
    "Do the retentions fit together?",
    (
        Bars(
            title="What is kept, or promised, for how long",
            description="By the games contract and Kafka.",
            unit=units.Seconds,
            asks=(Ask("max by (span) (gamelake_maintenance_retention_seconds)", "{{span}}"),),
        ),
        Bars(
            title="What fits",
            description="1 where one span is at least as long as another that relies on it. See the runbook "
            "RetentionsContradict.",
            unit=units.NoUnit,
            asks=(
                Ask(
                    "min by (longer, shorter) (gamelake_maintenance_retention_sufficient)",
                    "{{longer}} for {{shorter}}",
                ),
            ),
            limits=Limits(1, 0.5),
        ),
    ),
)

MAINTENANCE = Page(
    uid="gamelake-maintenance",
    title="Maintenance",
    description="Compaction, vacuum and the other rounds: when they ran, what they did, what waits for them.",
    variables=(Variable.TABLE,),
    rows=(_ALL, _ROUNDS, _TABLES, _RETENTIONS),
)
