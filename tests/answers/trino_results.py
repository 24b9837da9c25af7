"""Results of Trino, by its documentation, for each part of its SQL that other engines answer; and what they refuse.

Trino's pages: functions/datetime (date_diff), functions/comparison (greatest, least), functions/math (division),
functions/string (concat, split_part), functions/conversion (casts), functions/array, functions/aggregate.
"""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
from deltalake import write_deltalake

from gamelake.objects.store import Location
from gamelake.serving.sql.query_engine import QueryEngine
from gamelake.serving.sql.relations import Relations

_NIGHT = [
    datetime(2025, 12, 31, 23, tzinfo=UTC),
    datetime(2025, 12, 31, 23, 30, tzinfo=UTC),
    datetime(2026, 1, 1, 1, tzinfo=UTC),
]
ROWS = pa.table(
    {
        "event_time": pa.array(_NIGHT, pa.timestamp("us", "UTC")),
        "event_date": pa.array([each.date() for each in _NIGHT]),
        "event_name": ["first", "middle", "last"],
        "session_id": pa.array(["a", None, "c"]),
        "kafka_offset": [1, 2, 5],
        "level": pa.array([3, None, -7], pa.int32()),
        "amount": [1.5, None, 2.5],
        "price": pa.array([Decimal("0.10"), Decimal("0.15"), None], pa.decimal128(10, 2)),
        "tags": pa.array([["x", "y"], [], None], pa.list_(pa.string())),
        "attributes": pa.array([[("track", "dunes")], [], None], pa.map_(pa.string(), pa.string())),
        "car": pa.array([{"team": "red"}, {"team": None}, None], pa.struct([("team", pa.string())])),
    }
)


def make_rows(folder: str) -> tuple[Location, Relations]:
    """Write the table silver.events."""
    write_deltalake(f"{folder}/silver/events", ROWS)
    return Location(uri=f"file://{folder}"), Relations(frozenset({"silver.events"}), (), ())


def _of(expression: str, where: str = "true") -> str:
    return f"(SELECT {expression} FROM silver.events WHERE {where})"  # noqa: S608 # of this file


def _order(version: str) -> str:
    """The order of a version, as the views have it."""
    padded = f"regexp_replace('{version}', '([0-9]+)', '0000000000$1')"
    return f"regexp_replace({padded}, '0*([0-9]{{10}})', '$1') || '.'"


_SPAN = _of("date_diff('{}', min(event_time), max(event_time))")
_LAST, _MIDDLE = "event_name = 'last'", "event_name = 'middle'"

# Each expression with its value in Trino.
RESULTS: dict[str, object] = {
    _of("CAST(event_time AT TIME ZONE 'Asia/Tokyo' AS date)", "event_name = 'first'"): date(2026, 1, 1),
    _of("CAST(event_time AT TIME ZONE 'America/New_York' AS date)", "event_name = 'last'"): date(2025, 12, 31),
    "NULL IS DISTINCT FROM 1": True,
    "NULL IS DISTINCT FROM NULL": False,
    "2 IS DISTINCT FROM 1": True,
    "1 IS NOT DISTINCT FROM 1": True,
    "NULL IS NOT DISTINCT FROM NULL": True,
    "7 / 2": 3,
    "-7 / 2": -3,
    "7 / 2 * 2": 6,
    "7 / 2 / 2": 1,
    "8 / (7 / 3)": 4,
    "7 / 2e0": 3.5,
    "1e0 * 7 / 2": 3.5,
    _of("count(*) / 2"): 1,
    _of("sum(kafka_offset) / count(*)"): 2,
    _of("level / kafka_offset", _LAST): -1,
    _of("amount / kafka_offset", _LAST): 0.5,
    _of("CAST(price AS double) / 2", _MIDDLE): 0.075,
    "(SELECT half FROM (SELECT count(*) / 2 AS half FROM silver.events) t)": 1,
    "mod(-7, 3)": -1,
    "-7 % 3": -1,
    _of("avg(kafka_offset)"): 8 / 3,
    _of("sum(price)"): Decimal("0.25"),
    _of("price * 3", _MIDDLE): Decimal("0.45"),
    "round(2.5e0)": 3.0,
    "round(-2.5e0)": -3.0,
    "round(2.345e0, 2)": 2.35,
    "ceil(2.1e0)": 3,
    "floor(-2.1e0)": -3,
    "abs(-3)": 3,
    "CAST(2.5e0 AS integer)": 3,
    "CAST(-2.5e0 AS integer)": -3,
    "CAST(0.5e0 AS bigint)": 1,
    "CAST(2.5 AS bigint)": 3,
    _of("CAST(amount AS bigint)", _LAST): 3,
    _of("CAST(price * 10 AS bigint)", _MIDDLE): 2,
    "CAST(7 AS varchar)": "7",
    "CAST(1 > 0 AS varchar)": "true",
    _of("CAST(kafka_offset AS double)", _LAST): 5.0,
    _SPAN.format("minute"): 120,
    _SPAN.format("hour"): 2,
    _SPAN.format("day"): 0,
    _SPAN.format("week"): 0,
    _of("date_diff('day', min(event_date), max(event_date))"): 1,
    _of("date_diff('hour', max(event_time), min(event_time))"): -2,
    "date_diff('day', DATE '2026-01-04', DATE '2026-01-05')": 1,
    "date_diff('week', DATE '2026-01-04', DATE '2026-01-05')": 0,
    "date_diff('week', DATE '2026-01-04', DATE '2026-01-11')": 1,
    "date_diff('day', TIMESTAMP '2026-01-04 10:00:00', TIMESTAMP '2026-01-03 11:00:00')": 0,
    "date_add('month', 1, DATE '2026-01-31')": date(2026, 2, 28),
    "date_add('day', -1, DATE '2026-01-01')": date(2025, 12, 31),
    _of("date_add('hour', 1, event_time) = TIMESTAMP '2026-01-01 02:00:00'", _LAST): True,
    _of("event_date - INTERVAL '1' DAY", _LAST): date(2025, 12, 31),
    _of("event_date + INTERVAL '1' MONTH", _LAST): date(2026, 2, 1),
    _of("event_time > TIMESTAMP '2026-01-01 00:00:00' - INTERVAL '15' MINUTE", _MIDDLE): False,
    _of("date_trunc('week', event_date)", _LAST): date(2025, 12, 29),
    _of("CAST(date_trunc('month', event_time) AS date)", _MIDDLE): date(2025, 12, 1),
    _of("date_diff('day', date_trunc('year', event_date), event_date)", _MIDDLE): 364,
    "day_of_week(DATE '2026-01-04')": 7,
    "day_of_week(DATE '2026-01-05')": 1,
    "week(DATE '2026-01-01')": 1,
    "quarter(DATE '2026-05-01')": 2,
    "year(DATE '2026-05-01')": 2026,
    _of("extract(HOUR FROM event_time)", _MIDDLE): 23,
    _of("minute(event_time)", _MIDDLE): 30,
    "greatest(1, NULL)": None,
    "least(1, NULL)": None,
    "greatest(1, 3, 2)": 3,
    _of("max(greatest(kafka_offset, amount))", "amount IS NULL"): None,
    _of("least(level, kafka_offset)", _LAST): -7,
    "coalesce(NULL, 2)": 2,
    "nullif(1, 1)": None,
    "if(1 > 2, 1)": None,
    "CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END": "b",
    "concat('a', NULL)": None,
    "'a' || NULL": None,
    "'a\\b'": "a\\b",
    _of("max(concat(event_name, session_id))", "session_id IS NULL"): None,
    "'a_c' LIKE 'a\\_%' ESCAPE '\\'": True,
    "'abc' LIKE 'a\\_%' ESCAPE '\\'": False,
    "'abc' LIKE 'A%'": False,
    "substr('hello', -3)": "llo",
    "substr('hello', 2, 3)": "ell",
    "strpos('hello', 'l')": 3,
    "length('日本')": 2,
    "reverse('ab')": "ba",
    "lower('ÀB')": "àb",
    "regexp_replace('1.10', '([0-9]+)', '00$1')": "001.0010",
    "regexp_replace('001.0010', '0*([0-9]{3})', '$1')": "001.010",
    "regexp_replace(NULL, '([0-9]+)', '00$1')": None,
    f"{_order('1.9')} < {_order('1.10')}": True,
    f"{_order('1.10')} < {_order('1.10.1')}": True,
    f"{_order('1.10-beta.2')} < {_order('1.10')}": True,
    f"{_order('1.9.9')} < {_order('1.10-beta.2')}": True,
    "element_at(ARRAY[1, 2], 5)": None,
    "cardinality(ARRAY[1, 2])": 2,
    _of("tags[2]", "event_name = 'first'"): "y",
    _of("contains(tags, 'y')", "event_name = 'first'"): True,
    _of("contains(tags, 'y')", _MIDDLE): False,
    _of("element_at(attributes, 'track')", "event_name = 'first'"): "dunes",
    _of("element_at(attributes, 'car')", "event_name = 'first'"): None,
    _of("car.team", "event_name = 'first'"): "red",
    _of("count_if(amount IS NULL)"): 1,
    _of("count(DISTINCT level)"): 2,
    _of("count(*) FILTER (WHERE level > 0)"): 1,
    _of("max_by(event_name, event_time)"): "last",
    _of("min_by(event_name, event_time)"): "first",
    "(SELECT max(place) FROM (SELECT rank() OVER (ORDER BY event_date) AS place FROM silver.events) t)": 3,
    "(SELECT max(place) FROM (SELECT dense_rank() OVER (ORDER BY event_date) AS place FROM silver.events) t)": 2,
    "(SELECT max(b) FROM (SELECT lag(kafka_offset) OVER (ORDER BY event_time) AS b FROM silver.events) t)": 2,
    "(SELECT event_name FROM silver.events ORDER BY level LIMIT 1)": "last",
    "(SELECT event_name FROM silver.events ORDER BY level DESC LIMIT 1 OFFSET 2)": "middle",
    "(SELECT count(*) FROM (SELECT level FROM silver.events UNION SELECT 3) t)": 3,
}
# DuckDB alone answers these.
RESULTS_OF_DUCKDB: dict[str, object] = {
    "split_part('a-b', '-', 2)": "b",
    "split_part('a-b', '-', 3)": None,
    "split_part('a-', '-', 2)": "",
    _SPAN.format("month"): 0,
    _SPAN.format("quarter"): 0,
    _SPAN.format("year"): 0,
    "date_diff('month', DATE '2026-01-31', DATE '2026-02-01')": 0,
    "date_diff('month', DATE '2026-01-31', DATE '2026-02-28')": 1,
    "date_diff('month', DATE '2026-02-28', DATE '2026-01-31')": -1,
    "date_diff('year', DATE '2024-02-29', DATE '2025-02-28')": 1,
    "1e0 / 0": float("inf"),
}
# They would give another number, or might.
REFUSED = (
    "7.0 / 2",
    _of("price / 2", _LAST),
    _of("sum(price) / count(*)"),
    _of("avg(price)"),
    _of("max(event_date) - min(event_date)"),
    _of("max(event_time) - min(event_time)"),
    _of("nothing / 2", _LAST),
    "CAST('1.5' AS integer)",
    "try_cast('1.5' AS integer)",
    "CAST(1.5e0 AS varchar)",
    _of("CAST(event_time AS varchar)", _LAST),
    "TIMESTAMP '2026-01-01 00:00:00 UTC'",
    "DATE '2026-1-1'",
    "substr('hello', 0)",
    "split_part('a-b', '', 1)",
    "split_part('a-b', '-', 0)",
    "date_trunc('second', TIMESTAMP '2026-01-04 10:00:00')",
    "extract(DOW FROM DATE '2026-01-04')",
    "extract(SECOND FROM TIMESTAMP '2026-01-04 10:00:00')",
    "upper('straße')",
    "trim(' a ')",
    "regexp_extract('v12.3', '[0-9]+')",
    "regexp_replace('v12.3', '[0-9]+')",
    "regexp_replace('v12.3', '(\\d+)', '$1')",
    "regexp_replace('v12.3', '([0-9]+)', '$10')",
    "json_extract_scalar('{}', '$.a')",
    "date_format(DATE '2026-01-04', '%Y')",
    "to_unixtime(TIMESTAMP '1970-01-01 00:00:01')",
    "log(2, 8)",
    "bitwise_and(6, 3)",
    "is_nan(nan())",
    "random()",
    "my_function(1)",
    _of("approx_distinct(level)"),
    _of("approx_percentile(kafka_offset, 0.5)"),
    _of("stddev(kafka_offset)"),
    _of("array_agg(level)"),
    _of("max(event_name)", "event_time AT TIME ZONE 'Asia/Tokyo' > current_timestamp"),
    _of("CAST(event_time AT TIME ZONE session_id AS date)"),
    _of("CAST(event_date AT TIME ZONE 'Asia/Tokyo' AS date)"),
    "(SELECT count(*) FROM silver.events FOR VERSION AS OF 0)",
    "(SELECT count(*) FROM silver.events TABLESAMPLE BERNOULLI (50))",
    "(SELECT count(*) FROM silver.events a NATURAL JOIN silver.events b)",
    "(SELECT count(*) FROM silver.events CROSS JOIN UNNEST(tags) AS t (tag))",
)
REFUSED_BY_SPARK = tuple(RESULTS_OF_DUCKDB)[:-1]


def results(engine: QueryEngine) -> dict[str, object]:
    """The expressions that an engine answers, with their values."""
    return RESULTS | (RESULTS_OF_DUCKDB if engine is QueryEngine.DUCKDB else {})


def question(expressions: dict[str, object]) -> str:
    """One question for all expressions; their names are their numbers."""
    return "SELECT " + ",\n".join(f"{text} AS c{number}" for number, text in enumerate(expressions))


def is_same(found: object, wanted: object) -> bool:
    """Return True if a value is Trino's: numbers by value, all others by their type, too."""
    if isinstance(found, datetime) or isinstance(found, bool) != isinstance(wanted, bool):
        return False
    if isinstance(wanted, float) and isinstance(found, (int, float, Decimal)):
        return float(found) == wanted
    return found == wanted
