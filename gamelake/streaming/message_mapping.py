"""Adds the columns that all events share to messages of other schemas, by SQL of the games contract."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import duckdb
import pyarrow as pa

from gamelake.contract.games import GamesContract, load_games
from gamelake.contract.located_yaml import declaration, load_located
from gamelake.contract.messages import MessageSpec
from gamelake.delta.columns import MICROSECONDS_UTC
from gamelake.layers.silver import COMMON_SCHEMA
from gamelake.model.errors import ContractError, IncompatibleSchemaError
from gamelake.quality.engine import ROWS, engine, rows_without_zones
from gamelake.quality.predicate import Predicate, parse_expression


@dataclass(frozen=True, slots=True)
class _Accepted:
    """The types of the engine that a mapped column accepts.

    Attributes:
        types: a pattern of the accepted types' names.
        cast: the type that values are cast to.
        remedy: what to write in the contract if a type is not accepted.
    """

    types: str
    cast: str
    remedy: str


_NUMBERS = r"(U?(TINY|SMALL|BIG|HUGE)?INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL)\b"
_ACCEPTED = {
    pa.string(): _Accepted(r"(?!STRUCT|MAP|BLOB)[^\[]+$", "VARCHAR", "write an expression that is a text or a number"),
    pa.float64(): _Accepted(_NUMBERS, "DOUBLE", "write an expression that is a number"),
    pa.int64(): _Accepted(
        r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?$",
        "BIGINT",
        "write an expression that is a whole number: CAST(... AS BIGINT)",
    ),
    # A number could not be cast to a time, and the cast of a text would ignore its time zone.
    MICROSECONDS_UTC: _Accepted("TIMESTAMP|DATE", "TIMESTAMP", "write make_timestamp(<microseconds since 1970>)"),
}


@declaration
def load_event_contract(path: Path) -> GamesContract:
    """Read the games contract and parse the SQL of its mappings.

    A mapping is compared with a schema only when the first message of that schema arrives.

    Raises:
        ContractError: the contract is invalid, an expression is invalid, or it is not an expression of a single row.
    """
    contract = load_games(path)
    for index, spec in enumerate(contract.messages):
        for column, sql in spec.columns.items():
            try:
                _parsed(sql)
            except ContractError as error:
                line = load_located(path).line_of(f"$.messages[{index}].columns.{column}")
                raise ContractError(
                    f"{path}:{line}: '{column}' of the message {spec.message} {error}: {sql}"
                ) from error
    return contract


@dataclass(slots=True)
class MessageMapper:
    """Maps the messages that the contract has a mapping for; all others are unchanged.

    If the contract has several mappings of a message, the first one that fits a schema applies to that schema.

    Attributes:
        messages: the mappings of the contract, in order.
    """

    messages: Sequence[MessageSpec]
    _mappings: dict[tuple[str, pa.Schema], "_Mapping | str"] = field(default_factory=dict)

    def apply(self, message: str, columns: pa.RecordBatch) -> pa.RecordBatch:
        """Map rows of one message type.

        Args:
            message: the full name of the message type.
            columns: a column for each field of the message, in Delta types.

        Returns:
            The same rows in the same order: the fields that the contract does not leave out, and the mapped columns,
            which replace fields of the same name. A value that can't be computed for a row is null.

        Raises:
            IncompatibleSchemaError: no mapping of the message fits its fields.
        """
        specs = [spec for spec in self.messages if spec.message == message]
        if not specs:
            return columns
        key = (message, columns.schema)
        if key not in self._mappings:
            self._mappings[key] = _fitting(specs, columns.slice(0, 0))
        mapping = self._mappings[key]
        if isinstance(mapping, str):
            raise IncompatibleSchemaError(mapping)
        return mapping.rows(columns)


@dataclass(frozen=True, slots=True)
class _Mapping:
    """A mapping that fits a schema.

    Attributes:
        spec: the mapping of the contract.
        reads: the fields that the query needs; at least one field, to keep the number of rows.
        query: computes the mapped columns.
    """

    spec: MessageSpec
    reads: tuple[str, ...]
    query: str

    def rows(self, columns: pa.RecordBatch) -> pa.RecordBatch:
        found = _relation(self.query, columns.select(list(self.reads))).to_arrow_table().combine_chunks()
        mapped = {name: _array(found.column(name)).cast(COMMON_SCHEMA.field(name).type) for name in found.column_names}
        kept = {
            name: column
            for name, column in zip(columns.schema.names, columns.columns, strict=True)
            if name not in self.spec.leave_out
        }
        return pa.RecordBatch.from_pydict(kept | mapped)


def _fitting(specs: Sequence[MessageSpec], nothing: pa.RecordBatch) -> _Mapping | str:
    """Return the first mapping that fits the fields of a message, or the reason why the last one does not fit."""
    problem = ""
    for spec in specs:
        expressions = {column.value: _parsed(sql) for column, sql in spec.columns.items()}
        wanted = {name for each in expressions.values() for name in each.columns}
        reads = tuple(name for name in nothing.schema.names if name.lower() in wanted) or tuple(
            nothing.schema.names[:1]
        )
        found = _problem(expressions, nothing.select(list(reads)))
        if not found:
            values = ", ".join(f'{_value(column, each.text)} AS "{column}"' for column, each in expressions.items())
            return _Mapping(spec, reads, f"SELECT {values} FROM {ROWS}")  # noqa: S608 # of the contract, parsed
        problem = f"the mapping of {spec.message} does not fit its schema: {found}"
    return problem


def _problem(expressions: Mapping[str, Predicate], nothing: pa.RecordBatch) -> str:
    """Return the reason why expressions do not fit the fields of a message; "" if they fit."""
    values = ", ".join(f"({each.text})" for each in expressions.values())
    try:
        types = [str(kind) for kind in _relation(f"SELECT {values} FROM {ROWS}", nothing).types]  # noqa: S608 # as above
    except duckdb.Error as error:
        return str(error).partition("\n")[0]
    for column, kind in zip(expressions, types, strict=True):
        accepted = _ACCEPTED[COMMON_SCHEMA.field(column).type]
        if not re.match(accepted.types, kind):
            return f"{column} is {kind}; {accepted.remedy}"
    return ""


def _value(column: str, sql: str) -> str:
    return f"TRY(CAST(({sql}) AS {_ACCEPTED[COMMON_SCHEMA.field(column).type].cast}))"


@lru_cache(maxsize=1024)
def _parsed(sql: str) -> Predicate:
    return parse_expression(sql)


def _relation(query: str, columns: pa.RecordBatch) -> duckdb.DuckDBPyRelation:
    connection = engine()
    connection.register(ROWS, rows_without_zones(columns))
    return connection.sql(query)


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)
