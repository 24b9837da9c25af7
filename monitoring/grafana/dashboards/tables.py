"""Tables, for their users: rows, size, freshness and small files."""

from grafana_foundation_sdk.models import units

from monitoring.grafana.page import Page, Row, Variable
from monitoring.grafana.panels import (
    DURATION,
    FULL_WIDTH,
    MOST_SERIES,
    BarGauge,
    Column,
    Link,
    Query,
    Stat,
    Table,
    Thresholds,
    TimeSeries,
)
from monitoring.grafana.promql import age, top, top_rates

_ALL_TABLES = Row(
    "How is the lakehouse?",
    (
        Stat(
            title="Tables",
            description="Tables that the catalog service finds in the lakehouse.",
            unit=units.NoUnit,
            queries=(Query("count(gamelake_table_version)", "found"),),
        ),
        Stat(
            title="Registered in Trino",
            description="Tables that are registered in Trino. Fewer than exist: see the runbook TablesNotRegistered.",
            unit=units.NoUnit,
            queries=(Query("max(gamelake_catalog_registered_tables)", "registered"),),
        ),
        Stat(
            title="Rows",
            description="Rows of the selected tables, from their logs. silver/events has each silver row once more.",
            unit=units.Short,
            queries=(Query('sum(gamelake_table_rows{table=~"$table"})', "rows"),),
        ),
        Stat(
            title="Size",
            description=(
                "Data files of the newest versions of the selected tables; files of older versions are not included."
            ),
            unit=units.BytesIEC,
            queries=(Query('sum(gamelake_table_bytes{table=~"$table"})', "bytes"),),
        ),
        Stat(
            title="Small files",
            description="Share of the selected tables' files that are smaller than 16 MiB.",
            unit=units.PercentUnit,
            queries=(
                Query(
                    'sum(gamelake_table_small_files{table=~"$table"}) / sum(gamelake_table_files{table=~"$table"})',
                    "small",
                ),
            ),
        ),
        Stat(
            title="Age of the measurement",
            description="Time since the last run of the catalog service: the values on this page are as old.",
            unit=DURATION,
            queries=(Query(age("max(gamelake_catalog_last_run_timestamp_seconds)"), "ago"),),
            thresholds=Thresholds(60, 300),
        ),
    ),
)

_EACH_TABLE = Row(
    "How is each table?",
    (
        Table(
            title="Tables",
            description="Each table's newest version by its log.",
            label="table",
            columns=(
                Column("Rows", units.Short, 'max by (table) (gamelake_table_rows{table=~"$table"})'),
                Column("Size", units.BytesIEC, 'max by (table) (gamelake_table_bytes{table=~"$table"})'),
                Column("Files", units.Short, 'max by (table) (gamelake_table_files{table=~"$table"})'),
                Column("Small files", units.Short, 'max by (table) (gamelake_table_small_files{table=~"$table"})'),
                Column("Version", units.NoUnit, 'max by (table) (gamelake_table_version{table=~"$table"})'),
                Column(
                    "Last commit",
                    DURATION,
                    age('max by (table) (gamelake_table_last_commit_timestamp_seconds{table=~"$table"})'),
                ),
            ),
            sort="Size",
            links=(
                Link("Only this table", "gamelake-tables", "table"),
                Link("Its commits", "gamelake-pipeline", "table"),
                Link("Its maintenance", "gamelake-maintenance", "table"),
            ),
            height=20,
        ),
    ),
)

_OVER_TIME = Row(
    "How do they change?",
    (
        TimeSeries(
            title="Since the last commit",
            description=(
                "The ten tables with the oldest commit. A game without traffic has no commits, without being behind."
            ),
            unit=DURATION,
            queries=(
                Query(
                    top(
                        MOST_SERIES,
                        "table",
                        age('max by (table) (gamelake_table_last_commit_timestamp_seconds{table=~"$table"})'),
                    ),
                    "{{table}}",
                ),
            ),
        ),
        TimeSeries(
            title="Commits",
            description="New versions per minute, the ten busiest tables.",
            unit=units.OpsPerMinute,
            queries=(
                Query(
                    top(
                        MOST_SERIES,
                        "table",
                        '60 * sum by (table) (deriv(gamelake_table_version{table=~"$table"}[5m]))',
                        by='sum by (table) (deriv(gamelake_table_version{table=~"$table"}[$__range]))',
                    ),
                    "{{table}}",
                ),
            ),
        ),
        TimeSeries(
            title="Size",
            description="Data files of the newest version, the top ten tables.",
            unit=units.BytesIEC,
            queries=(
                Query(top(MOST_SERIES, "table", 'max by (table) (gamelake_table_bytes{table=~"$table"})'), "{{table}}"),
            ),
        ),
        BarGauge(
            title="Small files",
            description=(
                "Files smaller than 16 MiB, the top ten tables. From a thousand on: see the runbook TooManySmallFiles."
            ),
            unit=units.Short,
            queries=(Query('topk(10, max by (table) (gamelake_table_small_files{table=~"$table"}))', "{{table}}"),),
            thresholds=Thresholds(500, 1000),
        ),
        TimeSeries(
            title="Runs of the catalog service",
            description="Runs that find, register and measure tables; failed ones are retried.",
            unit=units.OpsPerMinute,
            queries=(
                Query("60 * sum by (outcome) (rate(gamelake_catalog_runs_total[$__rate_interval]))", "{{outcome}}"),
            ),
            width=FULL_WIDTH,
        ),
    ),
)

_GOLD = Row(
    "Is gold up to date?",
    (
        BarGauge(
            title="Refresh overdue",
            description=(
                "Seconds beyond its own interval, the ten worst tables. From 120 s and two more intervals on: "
                "see the runbook GoldTableBehind."
            ),
            unit=DURATION,
            queries=(
                Query(
                    "topk(10, clamp_min(time() "
                    '- (max by (table) (gamelake_gold_table_refreshed_timestamp_seconds{table=~"$table"}) > 0) '
                    "- max by (table) (gamelake_gold_table_interval_seconds), 0))",
                    "{{table}}",
                ),
            ),
            thresholds=Thresholds(60, 120),
        ),
        TimeSeries(
            title="Refreshes by outcome",
            description="Tables per minute, by outcome.",
            unit=units.OpsPerMinute,
            queries=(
                Query("60 * sum by (outcome) (rate(gamelake_gold_refreshes_total[$__rate_interval]))", "{{outcome}}"),
            ),
        ),
        TimeSeries(
            title="Rows written",
            description=("Rows of gold tables per second, the ten busiest tables; includes rows that replace others."),
            unit=units.RecordsPerSecond,
            queries=(
                Query(
                    top_rates(MOST_SERIES, "table", 'gamelake_gold_rows_written_total{table=~"$table"}'),
                    "{{table}}",
                ),
            ),
        ),
        TimeSeries(
            title="Gold runs",
            description="Duration of a run, and time since the job last made progress.",
            unit=DURATION,
            queries=(
                Query(
                    "sum(rate(gamelake_gold_run_seconds_sum[5m])) "
                    "/ (sum(rate(gamelake_gold_run_seconds_count[5m])) > 0)",
                    "mean of 5 minutes",
                ),
                Query(age("max(gamelake_gold_last_run_timestamp_seconds)"), "since the last one"),
            ),
        ),
    ),
)

TABLES = Page(
    uid="gamelake-tables",
    title="Tables",
    description="Rows, size, small files and freshness of each table, and whether it is registered in Trino.",
    variables=(Variable.TABLE,),
    rows=(_ALL_TABLES, _EACH_TABLE, _OVER_TIME, _GOLD),
)
