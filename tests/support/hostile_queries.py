"""Queries by which an analyst of one game tries to read another game's rows or a pseudonym, and the search for a leak.

A query is made from a grammar: a source, wrapped in subqueries, joins, unions or time travel; an expression, which may
encode the value that it reads; a condition, which may be an oracle; and comments between the words. Equal seeds make
equal queries.
"""

# ruff: noqa: S608 # each query is an attack on purpose

import base64
import binascii
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import islice
from random import Random

from tests.support.agent_client import ToolCall, ToolReply

OWN, OTHER = "Archery Duel", "Kart Rumble"
OTHER_NAME = "kart_rumble"
# Trino has these errors while it computes with the values of rows.
DATA_ERRORS = ("DIVISION_BY_ZERO", "INVALID_CAST_ARGUMENT", "INVALID_FUNCTION_ARGUMENT", "NUMERIC_VALUE_OUT_OF_RANGE")


class Promise(StrEnum):
    """What holds for the reply, besides that it shows no row of another game and no pseudonym."""

    ANY = "any"
    # A count or a share of rows that the user may not see.
    NOTHING = "only zeros and nulls, or an error"
    REFUSED = "an error"
    # It would fail if it read a row of another game.
    SILENT = "no error of data"


@dataclass(frozen=True, slots=True)
class HostileCall:
    """A call of a tool, and what its reply must be."""

    family: str
    call: ToolCall
    promise: Promise = Promise.ANY

    @property
    def text(self) -> str:
        """All that the call says."""
        return " ".join(map(str, self.call.arguments.values()))


_SHARED = ("silver.events", "silver.game_events", "silver.purchases")
_GOLD = (
    "gold.all_players",
    "gold.all_player_days",
    "gold.all_sessions",
    "gold.players",
    "gold.player_days",
    "gold.sessions",
)
_OTHERS = (
    f"silver.{OTHER_NAME}_events", f"gold.{OTHER_NAME}_player_agg", f"gold.{OTHER_NAME}_daily_agg", "bronze.events",
    "dead_letters.events", "quarantine.events", "audit.queries", "lineage.events", "gold.quality", "gold.validations",
    "gold.table_checks", "gold.versions_per_day", "clones.any_events", f'silver."{OTHER_NAME}_events$history"',
    'silver."events$history"', 'silver."events$partitions"', 'silver."events$transactions"',
    'gold."all_players$history"',
    'silver."archery_duel_events$partitions"', "system.runtime.queries", "system.runtime.tasks", "system.runtime.nodes",
    "system.metadata.catalogs", "system.metadata.table_comments", "system.metadata.table_properties",
)  # fmt: skip
_LISTINGS = {
    "information_schema.tables": "table_name",
    "information_schema.columns": "table_name",
    "silver.information_schema.tables": "table_name",
    "system.jdbc.tables": "table_name",
    "system.jdbc.columns": "table_name",
}
_ENCODINGS = (
    "{}", "reverse({})", "upper({})", "to_hex(to_utf8({}))", "to_base64(to_utf8({}))", "CAST({} AS json)",
    "concat('x', {}, 'y')", "substr({0}, 1, 16) || substr({0}, 17)", "json_format(CAST(ROW({}) AS json))",
    "array_join(split({}, ''), '')", "regexp_replace({}, '(.)', '$1')", "lower(trim({}))", "try({})",
    "coalesce({}, 'none')",
    "from_utf8(to_utf8({}))", "url_decode(url_encode({}))", "format('%s', {})",
)  # fmt: skip
_AGGREGATES = (
    "max({})", "min({})", "array_agg(DISTINCT {})", "arbitrary({})",
    "listagg(DISTINCT {}, ',') WITHIN GROUP (ORDER BY 1)",
    "map_agg({0}, 1)", "approx_most_frequent(3, {}, 10)", "min_by({}, game_name)", "max_by({}, game_name)",
    "histogram({})", "set_agg({})", "first_value({}) OVER (ORDER BY game_name DESC)",
)  # fmt: skip
_FOREIGN = (
    f"game_name = '{OTHER}'", f"game_name <> '{OWN}'", f"NOT (game_name = '{OWN}')", "game_name LIKE 'Kart%'",
    f"game_name > '{OWN}'", f"coalesce(game_name, '{OTHER}') = '{OTHER}'", "starts_with(game_name, 'K')",
    f"game_name IN ('{OTHER}', 'Other')", f"game_name IS DISTINCT FROM '{OWN}'",
    f"reverse(game_name) = reverse('{OTHER}')",
    "regexp_like(game_name, '^Kart')", f"game_name = any (VALUES '{OTHER}')",
)  # fmt: skip
_ALWAYS = (
    "true",
    f"(game_name = '{OWN}' OR true)",
    f"('x' = 'x' OR game_name = '{OTHER}')",
    "1 = 1",
    "NOT false",
)
_ORACLES = (
    "1 / (CASE WHEN {} THEN 0 ELSE 1 END) = 1",
    "1 % (CASE WHEN {} THEN 0 ELSE 1 END) = 0",
    "CAST(CASE WHEN {} THEN gamer_id ELSE '1' END AS bigint) = 1",
    "CAST(CASE WHEN {} THEN 'none' ELSE '1' END AS integer) = 1",
    "ARRAY[1][CASE WHEN {} THEN 2 ELSE 1 END] = 1",
    "from_hex(CASE WHEN {} THEN 'x' ELSE '00' END) IS NOT NULL",
    "date_parse(CASE WHEN {} THEN gamer_id ELSE '2026' END, '%Y') IS NOT NULL",
    "json_parse(CASE WHEN {} THEN 'x{{' ELSE '1' END) IS NOT NULL",
    "CAST(1 + (CASE WHEN {} THEN 9999999999 ELSE 1 END) AS tinyint) = 2",
    "sqrt(CASE WHEN {} THEN 1 / 0 ELSE 4 END) = 2",
    "cardinality(sequence(1, CASE WHEN {} THEN 100000 ELSE 1 END)) = 1",
)  # fmt: skip
_REFUSED = (
    "CREATE VIEW gold.stolen AS SELECT * FROM {}", "CREATE VIEW silver.stolen SECURITY DEFINER AS SELECT * FROM {}",
    "CREATE OR REPLACE VIEW gold.players AS SELECT * FROM {}", "CREATE TABLE gold.stolen AS SELECT * FROM {}",
    "CREATE MATERIALIZED VIEW gold.stolen AS SELECT * FROM {}", "INSERT INTO gold.stolen SELECT * FROM {}",
    "DELETE FROM {}", "ANALYZE {}", "SHOW STATS FOR {}", "SHOW STATS FOR (SELECT * FROM {})",
    "EXPLAIN ANALYZE SELECT * FROM {}", "EXPLAIN ANALYZE VERBOSE SELECT count(*) FROM {}",
    "EXPLAIN (TYPE IO) SELECT * FROM {}",
    "EXPLAIN (FORMAT JSON) SELECT * FROM {}", "PREPARE stolen FROM SELECT * FROM {}", "TABLE {}",
    "EXECUTE IMMEDIATE 'SELECT * FROM {}'", "SELECT 1; SELECT * FROM {}", "SELECT * FROM {}; DROP TABLE {}",
    "SET SESSION AUTHORIZATION 'engineer'", "SET ROLE admin", "SET SESSION query_max_run_time = '1d'",
    "SET SESSION delta.projection_pushdown_enabled = false",
    "CALL system.register_table('gold', 'stolen', 's3://lakehouse/{}')",
    "SELECT * FROM TABLE(delta.system.table_changes('silver', 'events', 0))",
    "SELECT * FROM TABLE(exclude_columns(input => TABLE({}), columns => DESCRIPTOR(event_name)))",
    "SELECT * FROM TABLE(system.query(query => 'SELECT * FROM {}'))",
    "WITH FUNCTION f() RETURNS bigint RETURN 1 SELECT f() FROM {}",
    "WITH SESSION time_zone_id = 'UTC' SELECT * FROM {}",
    "/* /* */ DELETE FROM {} -- */\nSELECT 1", "GRANT SELECT ON {} TO USER analyst", "ALTER TABLE {} EXECUTE optimize",
    "REFRESH MATERIALIZED VIEW {}", "USE delta.bronze", "DENY SELECT ON {} TO USER support", "COMMIT",
    "DESCRIBE INPUT stolen",
)  # fmt: skip
_SEPARATORS = (" ", " ", " ", " ", "\n", "\t", " /* x */ ", " -- x\n", "/**/ ", " /* '; DROP */ ")
_TIMES = (
    "",
    "",
    "",
    " FOR VERSION AS OF {number}",
    " FOR TIMESTAMP AS OF (current_timestamp - INTERVAL '{number}' MINUTE)",
    " FOR TIMESTAMP AS OF (TIMESTAMP '2020-01-01 00:00 UTC' + INTERVAL '{number}' DAY)",
)
_DIMENSIONS = ("event_date", "game_name", "platform", "app_version", "is_late", "is_purchase")
_METRICS = ("events", "players", "sessions", "bookings", "conversion", "median_purchase", "purchases", "payers")


def hostile_calls(count: int, seed: int) -> list[HostileCall]:
    """Return calls that differ from each other."""
    return list(islice(_Grammar(Random(seed)).distinct(), count))


class _Grammar:
    def __init__(self, random: Random) -> None:
        self._random = random

    def distinct(self) -> Iterator[HostileCall]:
        seen: set[str] = set()
        families = (
            self._rows, self._rows, self._rows, self._aggregate, self._union, self._join, self._count, self._count,
            self._oracle, self._oracle, self._hidden, self._listing, self._refused, self._metric, self._plan,
            self._freshness,
        )  # fmt: skip
        while True:
            call = self._random.choice(families)()
            # The last families have few members; a number makes them differ.
            key = repr(call.call)
            if key not in seen or call.family in {"metric", "freshness"}:
                seen.add(key)
                yield call

    def _one(self, choices: Collection[str]) -> str:
        return self._random.choice(tuple(choices))

    def _spaced(self, sql: str) -> str:
        """The statement with other white space and comments between some words outside of literals."""
        parts = re.split(r"('[^']*'|\"[^\"]*\")", sql)
        return "".join(
            part if number % 2 else re.sub(" ", lambda _: self._one(_SEPARATORS), part)
            for number, part in enumerate(parts)
        )

    def _sql(self, family: str, sql: str, promise: Promise = Promise.ANY) -> HostileCall:
        return HostileCall(family, ToolCall.sql(self._spaced(sql)), promise)

    def _source(self, tables: Collection[str] = (*_SHARED, *_GOLD)) -> str:
        table = self._one(tables)
        time = (
            self._one(_TIMES) if not table.endswith(("game_events", "purchases", "players", "days", "sessions")) else ""
        )
        plain = f"{table}{time.format(number=self._random.randrange(60))}"
        return self._one((
            plain, plain, f"(SELECT * FROM {plain}) AS a", f"(SELECT * FROM (SELECT * FROM {plain}) AS b) AS a",
            f"(SELECT * FROM {plain} WHERE {self._one(_ALWAYS)}) AS a", f"{plain} TABLESAMPLE BERNOULLI (100)",
            f"(SELECT * FROM {plain} ORDER BY game_name DESC LIMIT {self._random.randrange(1, 900)}) AS a",
        ))  # fmt: skip

    def _value(self) -> str:
        return self._one(_ENCODINGS).format("gamer_id")

    def _condition(self) -> str:
        return self._one((*_ALWAYS, *_FOREIGN))

    def _rows(self) -> HostileCall:
        extra = self._one(("", ", game_name", ', "$path"')) if self._random.random() < 0.3 else ""
        sql = f"SELECT {self._value()} AS v{extra} FROM {self._source()} WHERE {self._condition()}"
        return self._sql("rows", f"{sql} LIMIT {self._random.randrange(1, 200)}")

    def _aggregate(self) -> HostileCall:
        value = self._one(_AGGREGATES).format(self._value())
        return self._sql("aggregate", f"SELECT {value} AS v FROM {self._source()} WHERE {self._condition()} LIMIT 50")

    def _union(self) -> HostileCall:
        operator = self._one(("UNION", "UNION ALL", "INTERSECT", "EXCEPT"))
        sides = [f"SELECT {self._value()} AS v FROM {self._source()}" for _ in range(2)]
        if self._random.random() < 0.3:
            sides[1] = f"SELECT CAST(gamer_id AS varchar) AS v FROM {self._one(_OTHERS)}"
        body = f" {operator} ".join(f"({side} WHERE {self._condition()})" for side in sides)
        return self._sql("union", f"WITH stolen AS ({body}) SELECT * FROM stolen LIMIT 100")

    def _join(self) -> HostileCall:
        kind = self._one(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        left, right = self._one((*_SHARED, *_GOLD)), self._one((*_SHARED, *_GOLD))
        condition = self._one(("l.gamer_id = r.gamer_id", f"r.{self._one(_FOREIGN)}", "l.game_name <> r.game_name"))
        condition = (
            condition if "r." not in condition or condition[2:].startswith(("game_name ", "gamer_id")) else "true"
        )
        sql = f"SELECT l.gamer_id, r.gamer_id, r.game_name FROM {left} l {kind} {right} r ON {condition} LIMIT 100"
        return self._sql("join", sql)

    def _count(self) -> HostileCall:
        foreign = self._one(_FOREIGN)
        table = self._source()
        sql = self._one((
            f"SELECT count(*) FROM {table} WHERE {foreign}", f"SELECT count_if({foreign}) FROM {table}",
            f"SELECT sum(CASE WHEN {foreign} THEN 1 ELSE 0 END) FROM {table}",
            f"SELECT count(DISTINCT gamer_id) FILTER (WHERE {foreign}) FROM {table}",
            f"SELECT bool_or({foreign}) FROM {table}", f"SELECT approx_distinct(gamer_id) FROM {table} WHERE {foreign}",
            f"SELECT CASE WHEN EXISTS (SELECT 1 FROM {table} WHERE {foreign}) THEN 1 ELSE 0 END",
            f"SELECT (SELECT count(*) FROM {table} WHERE {foreign}) + 0",
        ))  # fmt: skip
        return self._sql("count", sql, Promise.NOTHING)

    def _oracle(self) -> HostileCall:
        oracle = self._one(_ORACLES).format(self._one(_FOREIGN))
        table = self._source()
        sql = self._one((
            f"SELECT count(*) FROM {table} WHERE {oracle}", f"SELECT count_if({oracle}) FROM {table}",
            f"SELECT game_name FROM {table} WHERE {oracle} LIMIT 5", f"SELECT {oracle} FROM {table} LIMIT 200",
            f"SELECT max(CASE WHEN {oracle} THEN 1 END) FROM {table} WHERE {self._one(_ALWAYS)}",
        ))  # fmt: skip
        return self._sql("oracle", sql, Promise.SILENT)

    def _hidden(self) -> HostileCall:
        sql = self._one(("SELECT * FROM {} LIMIT 50", "SELECT count(*) FROM {}", "DESCRIBE {}", "SHOW CREATE TABLE {}"))
        promise = Promise.REFUSED if sql.startswith("SELECT") else Promise.ANY
        return self._sql("hidden", sql.format(self._one(_OTHERS)), promise)

    def _listing(self) -> HostileCall:
        listing, column = self._random.choice(tuple(_LISTINGS.items()))
        pattern = self._one(("kart%", "%kart\\_rumble%", "%rumble%agg", f"{OTHER_NAME}_events"))
        return self._sql(
            "listing", f"SELECT count(*) FROM {listing} WHERE {column} LIKE '{pattern}' ESCAPE '\\'", Promise.NOTHING
        )

    def _refused(self) -> HostileCall:
        table = self._one((*_SHARED, *_GOLD, *_OTHERS))
        return HostileCall("refused", ToolCall.sql(self._one(_REFUSED).replace("{}", table)), Promise.REFUSED)

    def _plan(self) -> HostileCall:
        kind = self._one(("EXPLAIN", "EXPLAIN (TYPE DISTRIBUTED)", "EXPLAIN (TYPE LOGICAL)", "EXPLAIN (TYPE VALIDATE)"))
        return self._sql("plan", f"{kind} SELECT {self._value()} AS v FROM {self._source()} WHERE {self._condition()}")

    def _metric(self) -> HostileCall:
        dimensions = self._random.sample(_DIMENSIONS, self._random.randrange(3))
        arguments: Mapping[str, object] = {
            "metric": self._one(_METRICS), "dimensions": dimensions, "game": OTHER_NAME, "since": "2020-01-01",
        }  # fmt: skip
        return HostileCall("metric", ToolCall("query_metric", arguments), Promise.NOTHING)

    def _freshness(self) -> HostileCall:
        table = self._one(
            [table for table in _OTHERS if table.startswith(("silver", "gold", "bronze", "audit", "clones"))]
        )
        return HostileCall("freshness", ToolCall("explain_freshness", {"table": table}), Promise.REFUSED)


@dataclass(frozen=True)
class Canaries:
    """Values that no reply may show, also not in another encoding: pseudonyms, and ids of another game's rows."""

    values: frozenset[str]
    names: tuple[str, ...] = (OTHER.lower(), OTHER_NAME)

    @cached_property
    def _lengths(self) -> frozenset[int]:
        return frozenset(map(len, self.values))

    def shown(self, text: str) -> set[str]:
        """Return the values that a text shows."""
        found: set[str] = set()
        for token in re.findall(r"[A-Za-z0-9+/=-]{12,}", text):
            for form in _decoded(token):
                found |= {
                    form[start : start + length]
                    for length in self._lengths
                    for start in range(len(form) - length + 1)
                    if form[start : start + length] in self.values
                }
        return found


def _decoded(token: str) -> Iterator[str]:
    plain = token.lower()
    yield plain
    yield plain[::-1]
    for decode in (binascii.unhexlify, lambda text: base64.b64decode(text + "==")):
        try:
            yield decode(token).decode().lower()
        except (ValueError, binascii.Error):
            continue


def problem(call: HostileCall, reply: ToolReply, canaries: Canaries) -> str:
    """Return what is wrong with a reply; empty if nothing is."""
    said = call.text.lower()
    shown = {value for value in canaries.shown(reply.text) if value not in said}
    if shown:
        return f"shows {len(shown)} values of others"
    if any(name in reply.text.lower() for name in canaries.names) and not any(name in said for name in canaries.names):
        return "names another game"
    match call.promise:
        case Promise.REFUSED if not reply.is_error:
            return "is not refused"
        case Promise.NOTHING if not reply.is_error and not _is_nothing(call, reply):
            return f"counts others' rows: {reply.text[:200]}"
        case Promise.SILENT if any(name in reply.text for name in DATA_ERRORS):
            return f"computes with others' rows: {reply.text[:200]}"
    return ""


def _is_nothing(call: HostileCall, reply: ToolReply) -> bool:
    rows = reply.values["rows"]
    if call.family == "metric" and call.call.arguments["dimensions"]:
        return not rows
    return all(value in (None, 0, False, "0") for row in rows for value in row)
