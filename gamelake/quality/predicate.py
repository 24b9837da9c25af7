"""Parses the SQL of rules and mappings: its canonical form, its columns, and what it must not contain."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any, TypeAlias

from gamelake.model.errors import ContractError
from gamelake.quality.engine import engine

# A node of DuckDB's syntax tree, or a part of one.
Node: TypeAlias = Any

_FORBIDDEN = {
    "SUBQUERY": "queries another table",
    "WINDOW": "uses other rows",
    "STAR": "names all columns",
    "LAMBDA": "has a lambda",
    "PARAMETER": "has a parameter",
    "POSITIONAL_REFERENCE": "names a column by its number",
}
# Units of time without a constant length.
_MONTHS = re.compile(r"mon|year|quarter|decade|cent|mil", re.IGNORECASE)
_EMPTY_CLAUSES = ("where_clause", "having", "sample", "qualify")


@dataclass(frozen=True, slots=True)
class Predicate:
    """An expression: its canonical text, and its columns in lower case."""

    text: str
    columns: tuple[str, ...]


def parse(text: str) -> Predicate:
    """Parse a condition.

    Raises:
        ContractError: the text is not an expression, names no column, or its result may change for the same row.
    """
    found = parse_expression(text)
    if not found.columns:
        raise ContractError("names no column; a rule is a condition on the columns of one row")
    return found


def parse_expression(text: str) -> Predicate:
    """Parse an expression, which may be a constant.

    Raises:
        ContractError: the text is not an expression, or its result may change for the same row.
    """
    serialized = _query("SELECT json_serialize_sql(?)", f"SELECT ({text}\n)")
    tree = json.loads(serialized)
    if tree.get("error", True):
        raise ContractError(f"is not a SQL expression: {tree.get('error_message')}")
    expression = _only_expression(tree)
    for node in _nodes(expression):
        _check(node)
    canonical = _query("SELECT json_deserialize_sql(?)", serialized)
    columns = {str(node["column_names"][0]).lower() for node in _nodes(expression) if node["class"] == "COLUMN_REF"}
    return Predicate(canonical.removeprefix("SELECT "), tuple(sorted(columns)))


@dataclass(frozen=True, slots=True)
class Constant:
    """A part of an expression without columns: its value, and its type in the engine.

    `has_months` is whether it is an interval without a constant length.
    """

    value: object
    type: str
    has_months: bool = False


@lru_cache(maxsize=4096)
def expression_of(text: str) -> Node:
    """Return the syntax tree of an expression that `parse` has accepted."""
    return _only_expression(json.loads(_query("SELECT json_serialize_sql(?)", f"SELECT {text}")))


def constant_of(node: Node) -> Constant | None:
    """Return the value of a part of an expression; None if the part has a column."""
    if any(each["class"] == "COLUMN_REF" for each in _nodes(node)):
        return None
    return _literal(node) or _computed(json.dumps(node))


def _literal(node: Node) -> Constant | None:
    """A literal; None if the value has to be computed."""
    written = node.get("literal", {})
    match written.get("kind"):
        case "INTEGER":
            return Constant(int(written["text"]), "INTEGER")
        case "STRING":
            return Constant(written["text"], "VARCHAR")
        case "NUMERIC":
            return Constant(Decimal(written["text"]), "DECIMAL")
    return None


@lru_cache(maxsize=4096)
def _computed(node: str) -> Constant:
    statement = json.loads(_query("SELECT json_serialize_sql(?)", "SELECT 1"))
    statement["statements"][0]["node"]["select_list"] = [json.loads(node)]
    sql = _query("SELECT json_deserialize_sql(?)", json.dumps(statement))
    relation = engine().sql(sql)
    ((value,),) = relation.fetchall()
    return Constant(value, str(relation.types[0]), _MONTHS.search(sql) is not None)


def _query(sql: str, text: str) -> str:
    ((result,),) = engine().execute(sql, [text]).fetchall()
    return str(result)


def _only_expression(tree: Node) -> Node:
    """The expression of a statement that consists of one expression."""
    nodes = [statement["node"] for statement in tree["statements"]]
    node = nodes[0]
    plain = (
        len(nodes) == 1
        and node["type"] == "SELECT_NODE"
        and len(node["select_list"]) == 1
        and node["from_table"]["type"] == "EMPTY"
        and not any(node[clause] for clause in (*_EMPTY_CLAUSES, "group_expressions", "modifiers"))
        and not node["cte_map"]["map"]
        and not node["select_list"][0]["alias"]
    )
    if not plain:
        raise ContractError("is more than one SQL expression; write one over the columns of one row")
    return node["select_list"][0]


def _nodes(node: Node) -> Iterator[Node]:
    """An expression and all expressions in it."""
    if isinstance(node, dict):
        if "class" in node:
            yield node
        for part in node.values():
            yield from _nodes(part)
    elif isinstance(node, list):
        for part in node:
            yield from _nodes(part)


def _check(node: Node) -> None:
    kind = node["class"]
    if kind in _FORBIDDEN:
        raise ContractError(f"{_FORBIDDEN[kind]}; write an expression over the columns of one row")
    if kind == "FUNCTION" and node["function_name"].lower() not in _deterministic_functions():
        raise ContractError(f"calls {node['function_name']}(), which is unknown or not deterministic")


@cache
def _deterministic_functions() -> frozenset[str]:
    """The deterministic scalar functions of the engine."""
    found = engine().execute(
        "SELECT lower(function_name) FROM duckdb_functions() WHERE function_type = 'scalar' GROUP BY 1 "
        "HAVING bool_and(stability = 'CONSISTENT')"
    )
    return frozenset(name for (name,) in found.fetchall())
