"""The SQL of experiments, for DuckDB: exposures of some days, and statistics of an experiment's metric.

A player's value of a metric counts events after the first exposure. On the day of the exposure it comes from the table
of exposures, on later days from gold's player days. The statistics of a day are sums over the days up to it: a day adds
`now² - earlier²` to the sum of squares, where `earlier` is the player's value before the day.
"""

from collections.abc import Mapping
from datetime import date

from gamelake.contract.experiments import ExperimentSpec, Outcome
from gamelake.serving.gold.definition import quoted

# Players' values in these days before the exposure reduce the variance (CUPED).
DAYS_BEFORE = 14
_SUMS = ("players", "total", "total_squares", "before", "before_squares", "crossed", "excluded")
_EXPOSED = ("event_date", "experiment", "variant", "gamer_id")


def events_of_day_sql(day_sql: str, day: date) -> str:
    """Return the statement for the events of one of the game's days, over the relation `candidates`.

    Args:
        day_sql: SQL for an event's day in the game's time zone.
        day: the day.
    """
    return f"SELECT * REPLACE ({day_sql} AS event_date) FROM candidates WHERE {day_sql} = DATE '{day}'"  # noqa: S608 # our SQL


def exposures_sql(columns: Mapping[str, str], events: str) -> str:
    """Return the statement for the exposures in a game's events of some whole days.

    Args:
        columns: the SQL of each outcome, as an aggregate of events.
        events: the statement for the events.
    """
    keys = ", ".join(_EXPOSED)
    sums = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in columns.items())
    values = ", ".join(
        f"CAST(coalesce(summed.{quoted(name)}, 0) AS DECIMAL(38, 6)) AS {quoted(name)}" for name in columns
    )
    return f"""
        WITH events AS ({events}),
        exposed AS (
          SELECT event_date, exposure.experiment AS experiment, exposure.variant AS variant, gamer_id,
            min(event_time) AS exposed_at
          FROM events
          WHERE gamer_id IS NOT NULL AND exposure.experiment <> '' AND exposure.variant <> ''
          GROUP BY ALL),
        later AS (
          SELECT events.*, exposed.experiment, exposed.variant
          FROM events JOIN exposed ON events.event_date = exposed.event_date AND events.gamer_id = exposed.gamer_id
            AND events.event_time > exposed.exposed_at),
        summed AS (SELECT {keys}, {sums} FROM later GROUP BY {keys})
        SELECT {keys}, exposed_at, {values}
        FROM exposed LEFT JOIN summed USING ({keys})
        ORDER BY experiment, variant, gamer_id"""  # noqa: S608 # the contract's SQL


def _summed(over: str) -> str:
    """Return the sums of the statistics' columns, over a window if one is named."""
    return ", ".join(f"sum({name}) {over} AS {name}" for name in _SUMS)


def _values_of_players(experiment: ExperimentSpec, outcome: Outcome, last: date) -> str:
    """Return the relations `seen`, `players` and `valued`: each player's value before and after each change of it."""
    column = quoted(outcome.column)
    value = "CAST({0} > 0 AS DOUBLE)" if outcome.is_share else "CAST({0} AS DOUBLE)"
    start, end = f"DATE '{experiment.start}'", f"DATE '{last}'"
    return f"""player_days AS (SELECT * FROM all_days SEMI JOIN titles USING (game_name)),
        seen AS (
          SELECT gamer_id, min(event_date) AS first_day, arg_min(exposures.variant, exposed_at) AS variant,
            arg_min({column}, exposed_at) AS after, count(DISTINCT exposures.variant) AS met
          FROM exposures SEMI JOIN variants USING (variant)
          WHERE experiment = '{experiment.name}' AND event_date BETWEEN {start} AND {end}
          GROUP BY gamer_id),
        past AS (
          SELECT gamer_id, sum({column}) AS before
          FROM player_days JOIN seen USING (gamer_id)
          WHERE met = 1 AND event_date BETWEEN first_day - {DAYS_BEFORE} AND first_day - 1
          GROUP BY gamer_id),
        players AS (
          SELECT gamer_id, row_number() OVER () AS number, variant, first_day, after,
            {value.format("coalesce(before, 0)")} AS before
          FROM seen LEFT JOIN past USING (gamer_id) WHERE met = 1),
        happened AS (
          SELECT number, variant, before, first_day AS event_date, after AS added FROM players
          UNION ALL
          SELECT number, variant, before, event_date, coalesce({column}, 0)
          FROM player_days JOIN players USING (gamer_id)
          WHERE event_date > first_day AND event_date <= {end} AND {column} <> 0),
        cumulated AS (
          SELECT *, sum(added) OVER (
            PARTITION BY number ORDER BY event_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS reached
          FROM happened),
        valued AS (
          SELECT variant, event_date, before, {value.format("reached")} AS now,
            {value.format("(reached - added)")} AS earlier
          FROM cumulated)"""  # noqa: S608 # see above


def statistics_sql(experiment: ExperimentSpec, metric: str, outcome: Outcome, last: date) -> str:
    """Return the statement for the statistics of one metric, over the relations `exposures`, `all_days` and `titles`.

    Args:
        experiment: the experiment.
        metric: the metric.
        outcome: the metric's column in both relations.
        last: the last day to compute.
    """
    variants = ", ".join(f"('{each.name}')" for each in experiment.variants)
    start, end = f"DATE '{experiment.start}'", f"DATE '{last}'"
    return f"""
        WITH variants(variant) AS (VALUES {variants}),
        {_values_of_players(experiment, outcome, last)},
        changes AS (
          SELECT event_date, variant, 0 AS players, sum(now - earlier) AS total,
            sum(now * now - earlier * earlier) AS total_squares, sum(before * (now - earlier)) AS crossed,
            0.0 AS before, 0.0 AS before_squares, 0 AS excluded
          FROM valued GROUP BY ALL
          UNION ALL
          SELECT first_day, variant, count(*), 0, 0, 0, sum(before), sum(before * before), 0
          FROM players GROUP BY ALL
          UNION ALL
          SELECT first_day, variants.variant, 0, 0, 0, 0, 0, 0, count(*)
          FROM seen CROSS JOIN variants WHERE met > 1 GROUP BY ALL
          UNION ALL
          SELECT CAST(day AS DATE), variant, 0, 0, 0, 0, 0, 0, 0
          FROM generate_series({start}, {end}, INTERVAL 1 DAY) AS days(day) CROSS JOIN variants),
        daily AS (
          SELECT event_date, variant, {_summed("")}
          FROM changes GROUP BY event_date, variant)
        SELECT event_date, '{metric}' AS metric, variant, {_summed("OVER since")}
        FROM daily WINDOW since AS (PARTITION BY variant ORDER BY event_date)
        ORDER BY event_date, variant"""  # noqa: S608 # names of the contract
