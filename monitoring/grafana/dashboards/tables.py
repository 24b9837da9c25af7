"""Tables, for who reads them: how many rows, how large, how fresh, and in how many crumbs."""

from grafana_foundation_sdk.models import units

from monitoring.grafana.page import Page, Row, Variable
from monitoring.grafana.panels import FULL_WIDTH, Ask, Bars, Column, Course, Figure, Limits, rows

_ALL_TABLES = Row(
    "How is the lakehouse?",
    (
        Figure(
            title="Tables",
            description="Tables that the catalog service finds in the lakehouse.",
            unit=units.NoUnit,
            asks=(Ask("count(gamelake_table_version)", "found"),),
        ),
        Figure(
            title="Known to Trino",
            description="Tables that are registered. Fewer than there are: see the runbook TablesNotRegistered.",
            unit=units.NoUnit,
            asks=(Ask("max(gamelake_catalog_registered_tables)", "registered"),),
        ),
        Figure(
            title="Rows",
            description="Rows of the chosen tables, by their logs. silver/events has each silver row once more.",
            unit=units.Short,
            asks=(Ask('sum(gamelake_table_rows{table=~"$table"})', "rows"),),
        ),
        Figure(
            title="Size",
            description="Data files of the newest versions of the chosen tables; older versions' files come on top.",
            unit=units.BytesIEC,
            asks=(Ask('sum(gamelake_table_bytes{table=~"$table"})', "bytes"),),
        ),
        Figure(
            title="Small files",
            description="Share of the chosen tables' files that are under 16 MiB.",
            unit=units.PercentUnit,
            asks=(
                Ask(
                    'sum(gamelake_table_small_files{table=~"$table"}) / sum(gamelake_table_files{table=~"$table"})',
                    "small",
                ),
            ),
        ),
        Figure(
            title="Measured",
            description="How long ago the catalog service ended a round: so old is what stands here.",
            unit=units.Seconds,
            asks=(Ask("time() - max(gamelake_catalog_last_run_timestamp_seconds)", "ago"),),
            limits=Limits(60, 300),
        ),
    ),
)

_EACH_TABLE = Row(
    "How is each table?",
    (
        rows(
            "Tables",
            "Each table's newest version by its log.",
            "table",
            (
                Column("Rows", units.Short, 'max by (table) (gamelake_table_rows{table=~"$table"})'),
                Column("Size", units.BytesIEC, 'max by (table) (gamelake_table_bytes{table=~"$table"})'),
                Column("Files", units.Short, 'max by (table) (gamelake_table_files{table=~"$table"})'),
                Column("Small files", units.Short, 'max by (table) (gamelake_table_small_files{table=~"$table"})'),
                Column("Version", units.NoUnit, 'max by (table) (gamelake_table_version{table=~"$table"})'),
                Column(
                    "Last commit",
                    units.Seconds,
                    'time() - max by (table) (gamelake_table_last_commit_timestamp_seconds{table=~"$table"})',
                ),
            ),
        ),
    ),
)

_OVER_TIME = Row(
    "How do they change?",
    (
        Course(
            title="Since the last commit",
            description="The twelve tables that wait longest. A game without traffic waits without being behind.",
            unit=units.Seconds,
            asks=(
                Ask(
                    'topk(12, time() - max by (table) (gamelake_table_last_commit_timestamp_seconds{table=~"$table"}))',
                    "{{table}}",
                ),
            ),
        ),
        Course(
            title="Commits",
            description="New versions per minute, the twelve busiest tables.",
            unit=units.OpsPerMinute,
            asks=(
                Ask('topk(12, 60 * sum by (table) (deriv(gamelake_table_version{table=~"$table"}[5m])))', "{{table}}"),
            ),
        ),
        Course(
            title="Size",
            description="Data files of the newest version, the twelve largest tables.",
            unit=units.BytesIEC,
            asks=(Ask('topk(12, max by (table) (gamelake_table_bytes{table=~"$table"}))', "{{table}}"),),
        ),
        Bars(
            title="Small files",
            description="Files under 16 MiB, the twelve tables with most. From a thousand on: TooManySmallFiles.",
            unit=units.Short,
            asks=(Ask('topk(12, max by (table) (gamelake_table_small_files{table=~"$table"}))', "{{table}}"),),
            limits=Limits(500, 1000),
        ),
        Course(
            title="Rounds of the catalog service",
            description="Rounds of finding, registering and measuring tables; failed ones are tried again.",
            unit=units.OpsPerMinute,
            asks=(Ask("60 * sum by (outcome) (rate(gamelake_catalog_runs_total[$__rate_interval]))", "{{outcome}}"),),
            width=FULL_WIDTH,
        ),
    ),
)

_GOLD = Row(
    "Is gold up to date?",
    (
        Bars(
            title="Not looked at for",
            description="Seconds beyond its own interval, the twelve worst. From 120 s and two more intervals on: "
            "GoldTableBehind.",
            unit=units.Seconds,
            asks=(
                Ask(
                    "topk(12, clamp_min(time() "
                    '- max by (table) (gamelake_gold_table_refreshed_timestamp_seconds{table=~"$table"}) '
                    "- max by (table) (gamelake_gold_table_interval_seconds), 0))",
                    "{{table}}",
                ),
            ),
            limits=Limits(60, 120),
        ),
        Course(
            title="Looks",
            description="Tables per minute, by what became of them.",
            unit=units.OpsPerMinute,
            asks=(Ask("60 * sum by (outcome) (rate(gamelake_gold_refreshes_total[$__rate_interval]))", "{{outcome}}"),),
        ),
        Course(
            title="Rows written",
            description="Rows of gold tables per second, the twelve busiest; those that replace others count.",
            unit=units.RecordsPerSecond,
            asks=(
                Ask(
                    "topk(12, sum by (table) "
                    '(rate(gamelake_gold_rows_written_total{table=~"$table"}[$__rate_interval])))',
                    "{{table}}",
                ),
            ),
        ),
        Course(
            title="A round",
            description="How long a round takes, and how long ago the job was last well.",
            unit=units.Seconds,
            asks=(
                Ask(
                    "rate(gamelake_gold_run_seconds_sum[5m]) / rate(gamelake_gold_run_seconds_count[5m])",
                    "mean of 5 minutes",
                ),
                Ask("time() - max(gamelake_gold_last_run_timestamp_seconds)", "since the last one"),
            ),
        ),
    ),
)

TABLES = Page(
    uid="gamelake-tables",
    title="Tables",
    description="Rows, size, small files and freshness of each table, and whether Trino knows it.",
    variables=(Variable.TABLE,),
    rows=(_ALL_TABLES, _EACH_TABLE, _OVER_TIME, _GOLD),
)
