"""The closed list of Trino's SQL that the other engines answer with Trino's result. A test covers each line of it.

Anything outside the list is an error, never a different number. Engines differ silently: 7 / 2 is 3 in Trino and 3.5 in
DuckDB; date_diff counts whole months or crossed month boundaries; the greatest of 1 and NULL is NULL or 1. If a
translation depends on a type that is not known, it is an error too.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from gamelake.model.errors import QuestionError
from gamelake.serving.sql.column_types import ExpressionTypes
from gamelake.serving.sql.query_engine import QueryEngine

_Type = exp.DType
_INTEGERS = frozenset(exp.DataType.INTEGER_TYPES)
_DOUBLES = frozenset({_Type.DOUBLE, _Type.FLOAT})
_DECIMALS = frozenset({_Type.DECIMAL})
_NUMBERS = _INTEGERS | _DOUBLES | _DECIMALS
_MOMENTS = frozenset(exp.DataType.TEMPORAL_TYPES) - {_Type.DATE, _Type.TIME, _Type.TIMETZ}
_DATES = frozenset({_Type.DATE})
_TEXTS = frozenset(exp.DataType.TEXT_TYPES)

# The same in all engines, also with NULL.
_ALIKE: tuple[type[exp.Expr], ...] = (
    # the statement
    exp.Select, exp.From, exp.Join, exp.Where, exp.Group, exp.Having, exp.Order, exp.Ordered, exp.Limit, exp.Offset,
    exp.With, exp.CTE, exp.Subquery, exp.Union, exp.Intersect, exp.Except, exp.Distinct, exp.Table, exp.TableAlias,
    # names, numbers and types
    exp.Alias, exp.Column, exp.Identifier, exp.Star, exp.Dot, exp.Paren, exp.Tuple, exp.Literal, exp.Null, exp.Boolean,
    exp.DataType, exp.DataTypeParam, exp.Interval, exp.Var,
    # conditions
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ,
    exp.NullSafeNEQ, exp.Is, exp.In, exp.Between,
    exp.Exists, exp.Like, exp.Escape, exp.Case, exp.Coalesce, exp.Nullif,
    # numbers
    exp.Mul, exp.Neg, exp.Mod, exp.Abs, exp.Round, exp.Ceil, exp.Floor,
    # text
    exp.Lower, exp.Length, exp.Reverse, exp.StrPosition, exp.Concat, exp.DPipe,
    # time
    exp.Year, exp.Quarter, exp.Month, exp.Day, exp.Hour, exp.Minute, exp.WeekOfYear,
    # lists and maps
    exp.Array, exp.Bracket, exp.ArrayContains, exp.ArraySize,
    # aggregates and windows
    exp.Count, exp.CountIf, exp.Sum, exp.Min, exp.Max, exp.ArgMax, exp.ArgMin, exp.Filter, exp.Window, exp.WindowSpec,
    exp.RowNumber, exp.Rank, exp.DenseRank, exp.Lag, exp.Lead,
)  # fmt: skip
_EXTRACTED = frozenset({"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE"})
_TRUNCATED = frozenset({"MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"})
_ADDED = frozenset({"SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"})
_WHOLE_UNITS = frozenset({"MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK"})
# In Trino and DuckDB a month has passed from 31 January to 28 February, in Spark it has not.
_CALENDAR_UNITS = frozenset({"MONTH", "QUARTER", "YEAR"})


@dataclass(frozen=True, slots=True)
class Translation:
    """Checks a statement against the list, and rewrites the parts that an engine spells differently.

    Attributes:
        engine: the engine to translate for.
        types: the types of the statement's expressions.
    """

    engine: QueryEngine
    types: ExpressionTypes

    def __call__(self, node: exp.Expr) -> exp.Expr:
        """Return the engine's node for a node of the statement.

        Raises:
            QuestionError: the node is not in the list.
        """
        rule = _BY_RULE.get(type(node))
        if rule is not None:
            return rule(self, node)
        if not isinstance(node, _ALIKE) or (isinstance(node, exp.Join) and node.args.get("method")):
            raise _refused(node, "it is not in the list of functions that other engines answer as Trino does")
        return node

    def kind(self, node: exp.Expr) -> exp.DType:
        """Return the type of an expression.

        Raises:
            QuestionError: the type is not known; names the expression.
        """
        found = self.types.of(node).this
        if found in {_Type.UNKNOWN, _Type.NULL}:
            raise _refused(node, "its type is not known here, and the result depends on it")
        return _Type(found)


def _divided(to: Translation, node: exp.Expr) -> exp.Expr:
    kinds = {to.kind(node.this), to.kind(node.expression)}
    if kinds <= _INTEGERS:
        return exp.Paren(this=exp.IntDiv(this=node.this, expression=node.expression))
    if kinds & _DOUBLES and kinds <= _NUMBERS:
        return node
    raise _refused(node, "Trino rounds a quotient of decimals: CAST one side to double")


def _subtracted(to: Translation, node: exp.Expr) -> exp.Expr:
    if isinstance(node.expression, exp.Interval):
        return _moved(to, node, node.this)
    if {to.kind(node.this), to.kind(node.expression)} <= _NUMBERS:
        return node
    raise _refused(node, "a difference of times has another type in each engine: use date_diff")


def _added(to: Translation, node: exp.Expr) -> exp.Expr:
    if isinstance(node.expression, exp.Interval):
        return _moved(to, node, node.this)
    if {to.kind(node.this), to.kind(node.expression)} <= _NUMBERS:
        return node
    raise _refused(node, "only numbers can be added, or an interval to a time on its left")


def _date_added(to: Translation, node: exp.Expr) -> exp.Expr:
    if node.text("unit").upper() not in _ADDED:
        raise _refused(node, f"its unit must be one of {', '.join(sorted(_ADDED))}")
    return _moved(to, node, node.this)


def _moved(to: Translation, node: exp.Expr, start: exp.Expr) -> exp.Expr:
    """Keep the type: a date plus an interval stays a date."""
    kind = to.kind(start)
    if kind in _MOMENTS:
        if to.engine is QueryEngine.SPARK and isinstance(node, exp.DateAdd):
            interval = exp.Interval(this=node.expression, unit=exp.Var(this=node.text("unit").upper()))
            return exp.Add(this=node.this, expression=interval)
        return node
    if kind in _DATES:
        return exp.cast(exp.Paren(this=node) if isinstance(node, exp.Binary) else node, "date")
    raise _refused(node, "an interval can be added only to a date or time")


def _truncated(to: Translation, node: exp.Expr) -> exp.Expr:
    if node.text("unit").upper() not in _TRUNCATED:
        raise _refused(node, f"its unit must be one of {', '.join(sorted(_TRUNCATED))}")
    kind = to.kind(node.this)
    if kind in _DATES:
        return exp.cast(node, "date")
    if kind in _MOMENTS:
        return node
    raise _refused(node, "only dates and times can be truncated")


def _date_difference(to: Translation, node: exp.Expr) -> exp.Expr:
    unit = node.text("unit").upper()
    known = _WHOLE_UNITS if to.engine is QueryEngine.SPARK else _WHOLE_UNITS | _CALENDAR_UNITS
    if unit not in known:
        raise _refused(node, f"its unit must be one of {', '.join(sorted(known))}")
    if not {to.kind(node.this), to.kind(node.expression)} <= _DATES | _MOMENTS:
        raise _refused(node, "only dates and times have a difference")
    if to.engine is QueryEngine.DUCKDB:
        # DuckDB's date_diff counts crossed boundaries; Trino's counts whole units that have passed.
        return exp.Anonymous(
            this="date_sub", expressions=[exp.Literal.string(unit.lower()), node.expression, node.this]
        )
    return node


def _extracted(_: Translation, node: exp.Expr) -> exp.Expr:
    if node.name.upper() not in _EXTRACTED:
        raise _refused(node, f"only {', '.join(sorted(_EXTRACTED))} can be extracted")
    return node


def _now(to: Translation, node: exp.Expr) -> exp.Expr:
    if to.engine is QueryEngine.DUCKDB:
        # Here the tables' timestamps are in UTC without a zone, so this one must be as well.
        return sqlglot.parse_one("make_timestamp(epoch_us(current_timestamp))", dialect="duckdb")
    return node


def _today(to: Translation, node: exp.Expr) -> exp.Expr:
    """Use the day in UTC, like the tables, wherever the client is. Trino and our Spark sessions already run in UTC."""
    return exp.cast(_now(to, exp.CurrentTimestamp()), "date") if to.engine is QueryEngine.DUCKDB else node


def _in_zone(to: Translation, node: exp.Expr) -> exp.Expr:
    """Convert to the zone's clock. Only its date is the same value in all engines."""
    zone, parent = node.args["zone"], node.parent
    is_literal = isinstance(zone, exp.Literal) and zone.is_string
    if not (is_literal and isinstance(parent, exp.Cast) and parent.args["to"].this in _DATES):
        raise _refused(node, "a time in a zone is in the list only as CAST(x AT TIME ZONE 'Area/City' AS date)")
    if to.kind(node.this) not in _MOMENTS:
        raise _refused(node, "only times have a zone")
    if to.engine is QueryEngine.DUCKDB:
        in_utc = exp.Anonymous(this="timezone", expressions=[exp.Literal.string("UTC"), node.this])
        return exp.Anonymous(this="timezone", expressions=[zone, in_utc])
    if to.engine is QueryEngine.SPARK:
        return exp.Anonymous(this="from_utc_timestamp", expressions=[node.this, zone])
    return node


def _averaged(to: Translation, node: exp.Expr) -> exp.Expr:
    of = node.this.expressions[0] if isinstance(node.this, exp.Distinct) else node.this
    if to.kind(of) in _INTEGERS | _DOUBLES:
        return node
    raise _refused(node, "Trino rounds an average of decimals: CAST it to double")


def _extreme(_: Translation, node: exp.Expr) -> exp.Expr:
    """Return NULL if any argument is NULL; other engines ignore NULLs."""
    every = [node.this, *node.expressions]
    is_null: exp.Expr = exp.Is(this=every[0].copy(), expression=exp.Null())
    for each in every[1:]:
        is_null = exp.Or(this=is_null, expression=exp.Is(this=each.copy(), expression=exp.Null()))
    function = "greatest" if isinstance(node, exp.Greatest) else "least"
    return exp.Case(
        ifs=[exp.If(this=is_null, true=exp.Null())],
        default=exp.Anonymous(this=function, expressions=every),
    )


def _conditional(_: Translation, node: exp.Expr) -> exp.Expr:
    """Add an ELSE with NULL, which Spark's `if` requires."""
    if node.arg_key != "ifs" and node.args.get("false") is None:
        node.set("false", exp.Null())
    return node


def _day_of_week(to: Translation, node: exp.Expr) -> exp.Expr:
    """Number the days from Monday as 1; Spark's `weekday` begins with 0."""
    if to.engine is not QueryEngine.SPARK:
        return node
    from_zero = exp.Anonymous(this="weekday", expressions=[node.this])
    return exp.Paren(this=exp.Add(this=from_zero, expression=exp.Literal.number(1)))


def _substring(_: Translation, node: exp.Expr) -> exp.Expr:
    start = node.args.get("start")
    number = start.this if isinstance(start, exp.Neg) else start
    if isinstance(number, exp.Literal) and number.is_int and int(number.name) != 0:
        return node
    raise _refused(node, "its start must be a number other than 0")


def _split_part(to: Translation, node: exp.Expr) -> exp.Expr:
    by, index = node.args["delimiter"], node.args["part_index"]
    is_plain = isinstance(by, exp.Literal) and by.is_string and by.name and isinstance(index, exp.Literal)
    if to.engine is QueryEngine.DUCKDB and is_plain and index.is_int and int(index.name) > 0:
        # A missing part is NULL, not empty.
        parts = exp.Anonymous(this="string_split", expressions=[node.this, by])
        return exp.Anonymous(this="list_extract", expressions=[parts, index])
    raise _refused(
        node, "only DuckDB has Trino's result, and only if the delimiter and the number (above 0) are literals"
    )


def _replaced(to: Translation, node: exp.Expr) -> exp.Expr:
    """Replace every match of a pattern in plain characters; engines disagree about other patterns."""
    pattern, new = node.expression, node.args.get("replacement") or exp.Null()
    literals = all(isinstance(each, exp.Literal) and each.is_string for each in (pattern, new))
    if not (literals and _PLAIN_PATTERN.fullmatch(pattern.name) and _PLAIN_REPLACEMENT.fullmatch(new.name)):
        raise _refused(node, "only a plain pattern with one group and a replacement that ends with $1 is in the list")
    if to.engine is QueryEngine.DUCKDB:
        texts = [pattern, exp.Literal.string(new.name.replace("$", "\\")), exp.Literal.string("g")]
        return exp.Anonymous(this="regexp_replace", expressions=[node.this, *texts])
    return exp.Anonymous(this="regexp_replace", expressions=[node.this, pattern, new])


_PLAIN_PATTERN = re.compile(r"[0-9a-z*]*\(\[[0-9a-z-]+\](?:\+|\{[0-9]+\})\)")
_PLAIN_REPLACEMENT = re.compile(r"[0-9a-z]*\$1")


def _cast(to: Translation, node: exp.Expr) -> exp.Expr:
    target = node.args["to"].this
    if isinstance(node.this, exp.Literal) and node.this.is_string:
        if target in _DATES | _MOMENTS:
            return _moment_literal(node)
        if target in _TEXTS:
            return node
    source = to.kind(node.this)
    if target in _INTEGERS and source in _DOUBLES | _DECIMALS:
        # Trino rounds half away from zero; Spark truncates; DuckDB rounds half to even for doubles.
        return type(node)(**{**node.args, "this": exp.Round(this=node.this)})
    if any(source in sources and target in targets for sources, targets in _CASTS):
        return node
    raise _refused(node, f"a cast from {source.value} to {target.value} is not in the list")


_CASTS: tuple[tuple[frozenset[exp.DType], frozenset[exp.DType]], ...] = (
    (_INTEGERS, _INTEGERS | _DOUBLES | _DECIMALS | _TEXTS),
    (_DOUBLES, _DOUBLES),
    (_DECIMALS, _DOUBLES),
    (_TEXTS, _TEXTS),
    (_DATES, _DATES | _MOMENTS | _TEXTS),
    (_MOMENTS, _DATES | _MOMENTS),
    (frozenset({_Type.BOOLEAN}), frozenset({_Type.BOOLEAN}) | _TEXTS),
)


def _moment_literal(node: exp.Expr) -> exp.Expr:
    text = node.this.name
    pattern = "dddd-dd-dd" if node.args["to"].this in _DATES else "dddd-dd-dd dd:dd:dd"
    plain = "".join("d" if character.isdigit() and character.isascii() else character for character in text)
    if plain == pattern or (node.args["to"].this in _MOMENTS and plain == "dddd-dd-dd"):
        return node
    raise _refused(node, "a time is written as 2026-01-31 or 2026-01-31 10:00:00, in UTC and without a zone")


_BY_RULE: Mapping[type[exp.Expr], Callable[[Translation, exp.Expr], exp.Expr]] = {
    exp.Div: _divided,
    exp.Sub: _subtracted,
    exp.Add: _added,
    exp.DateAdd: _date_added,
    exp.DateDiff: _date_difference,
    exp.DateTrunc: _truncated,
    exp.TimestampTrunc: _truncated,
    exp.Extract: _extracted,
    exp.CurrentTimestamp: _now,
    exp.CurrentDate: _today,
    exp.AtTimeZone: _in_zone,
    exp.Avg: _averaged,
    exp.Greatest: _extreme,
    exp.Least: _extreme,
    exp.If: _conditional,
    exp.DayOfWeekIso: _day_of_week,
    exp.Substring: _substring,
    exp.SplitPart: _split_part,
    exp.RegexpReplace: _replaced,
    exp.Cast: _cast,
    exp.TryCast: _cast,
}


def _refused(node: exp.Expr, reason: str) -> QuestionError:
    return QuestionError(f"only Trino answers {_shown(node)}: {reason}")


def _shown(node: exp.Expr) -> str:
    text = node.sql(dialect=QueryEngine.TRINO.value, comments=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


_SHOWN = 80
