"""Trino's types of a statement's expressions, inferred from the tables' columns through views and subqueries."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

_TRINO = "trino"
_NUMBER = "expression"
# sqlglot does not know that truncating or shifting a time keeps its type.
_SAME: dict[str, Any] = {"annotator": lambda self, node: self._annotate_by_args(node, "this")}
_KINDS: dict[type[exp.Expr], dict[str, Any]] = {
    **Dialect.get_or_raise(_TRINO).EXPRESSION_METADATA,
    **dict.fromkeys((exp.TimestampTrunc, exp.DateTrunc, exp.DateAdd, exp.AtTimeZone, exp.ArgMax, exp.ArgMin), _SAME),
}
UNKNOWN = exp.DataType(this=exp.DataType.Type.UNKNOWN)


class ColumnTypes:
    """The column types of the tables and views that a question may read.

    Add a table or view before a view that reads it.
    """

    def __init__(self) -> None:
        self._schema = MappingSchema(dialect=_TRINO)

    def add_table(self, name: str, schema: pa.Schema) -> None:
        """Add a table.

        Args:
            name: the table's name, `schema.table`.
            schema: all columns of the table, with their Arrow types.
        """
        self._schema.add_table(name, {field.name: _of_arrow(field.type) for field in schema}, dialect=_TRINO)

    def add_view(self, name: str, tree: exp.Query) -> None:
        """Add a view.

        Args:
            name: the view's name, `schema.view`.
            tree: the view's statement, which reads only tables and views added before.
        """
        columns = {column.alias_or_name: column.type or UNKNOWN for column in _selects(self._annotated(tree))}
        self._schema.add_table(name, columns, dialect=_TRINO)

    def of(self, tree: exp.Query) -> "ExpressionTypes":
        """Infer the types of a statement's expressions.

        Args:
            tree: the statement. Its nodes are numbered in place, so that their types can be found later.
        """
        for number, node in enumerate(tree.walk()):
            node.meta[_NUMBER] = number
        return ExpressionTypes(self._annotated(tree))

    def _annotated(self, tree: exp.Query) -> exp.Expr:
        copy: exp.Expr = tree.copy().transform(_with_decimals)
        try:
            qualified = qualify(
                copy, schema=self._schema, dialect=_TRINO, quote_identifiers=False, validate_qualify_columns=False
            )
            return annotate_types(qualified, schema=self._schema, expression_metadata=_KINDS, dialect=_TRINO)
        except SqlglotError:
            # Every type is then unknown. The engine reports the fault in the statement.
            return copy


class ExpressionTypes:
    """The type of each expression of a statement."""

    def __init__(self, annotated: exp.Expr) -> None:
        self._types = {number: node.type for node, number in _numbered(annotated) if node.type is not None}

    def of(self, node: exp.Expr) -> exp.DataType:
        """Return the type of one expression of the statement, or `UNKNOWN` if it can't be inferred."""
        found = self._types.get(node.meta.get(_NUMBER, -1), UNKNOWN)
        return found if isinstance(found, exp.DataType) else UNKNOWN


def _numbered(tree: exp.Expr) -> Iterator[tuple[exp.Expr, int]]:
    # The last node with a number is the innermost: the literal, not the cast that was put around it.
    return ((node, node.meta[_NUMBER]) for node in tree.walk() if _NUMBER in node.meta)


def _selects(tree: exp.Expr) -> list[exp.Expr]:
    return tree.selects if isinstance(tree, exp.Query) else []


def _with_decimals(node: exp.Expr) -> exp.Expr:
    """Cast a literal like 2.5 to Trino's decimal type; 25e-1 stays a double."""
    if not (isinstance(node, exp.Literal) and node.is_number and "." in node.name and "e" not in node.name.lower()):
        return node
    whole, _, fraction = node.name.partition(".")
    precision = len(whole.lstrip("0")) + len(fraction)
    number = exp.cast(exp.Literal.number(node.name), f"decimal({max(precision, 1)}, {len(fraction)})", dialect=_TRINO)
    number.meta.update(node.meta)
    return number


def _of_arrow(kind: pa.DataType) -> exp.DataType:
    return exp.DataType.build(_name(kind), dialect=_TRINO)


def _name(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if pa.types.is_map(kind):
        return f"map({_name(kind.key_type)}, {_name(kind.item_type)})"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array({_name(kind.value_type)})"
    if pa.types.is_struct(kind):
        fields = ", ".join(f'"{field.name}" {_name(field.type)}' for field in kind)
        return f"row({fields})"
    return next(name for is_it, name in _SIMPLE if is_it(kind))


_SIMPLE = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int64, "bigint"),
    (pa.types.is_integer, "integer"),
    (pa.types.is_float32, "real"),
    (pa.types.is_floating, "double"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "timestamp"),
    (pa.types.is_string, "varchar"),
    (pa.types.is_large_string, "varchar"),
    (pa.types.is_string_view, "varchar"),
    (lambda _: True, "varbinary"),
)
