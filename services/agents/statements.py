"""Accepts one statement that reads, and refuses all others before Trino sees them.

Trino's access control protects the rows; this check is a second line. A comment may end earlier for one parser than for
another, so Trino gets the statement without its comments.
"""

import re
from typing import NamedTuple

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from gamelake.model.errors import QuestionError

LONGEST_STATEMENT = 20_000
_DEEPEST = 40
_TOKEN = re.compile(
    r"""
      (?P<comment> --[^\r\n]* | /\*.*?\*/ )
    | (?P<quoted> '(?:[^']|'')*' | "(?:[^"]|"")*" )
    | (?P<end> ; )
    | (?P<plain> (?!/\*) [A-Za-z0-9_.,()+\-*/%<>=!|\[\]:\ \t\r\n] )
    """,
    re.VERBOSE | re.DOTALL,
)
_QUERY = re.compile(r"\(*\s*(?:SELECT|WITH|VALUES)\b", re.IGNORECASE)
_EXPLAIN = re.compile(r"EXPLAIN\s+(?:\(\s*TYPE\s+(?:LOGICAL|DISTRIBUTED|VALIDATE)\s*\)\s*)?", re.IGNORECASE)
_IDENTIFIER = r'(?:\w+|"[^"]+")'
_NAME = rf"{_IDENTIFIER}(?:\.{_IDENTIFIER}){{0,2}}"
_TEXT = "'(?:[^']|'')*'"
_LISTING = re.compile(
    rf"""
    SHOW \s+ (?: CATALOGS | (?:SCHEMAS|TABLES|FUNCTIONS) (?: \s+ (?:FROM|IN) \s+ {_NAME} )?
               | COLUMNS \s+ (?:FROM|IN) \s+ {_NAME} )
             (?: \s+ LIKE \s+ {_TEXT} (?: \s+ ESCAPE \s+ {_TEXT} )? )?
    | SHOW \s+ CREATE \s+ (?:TABLE|VIEW) \s+ {_NAME}
    | (?:DESCRIBE|DESC) \s+ {_NAME}
    """,
    re.IGNORECASE | re.VERBOSE,
)
# A query of Trino can also call table functions, of which `sequence` alone reads no table, and it can begin with
# functions or session properties of its own. A common table expression may have the name "session".
_BEYOND_READING = re.compile(
    r"\bTABLE\s*\((?!\s*sequence\s*\()|\bWITH\s+(?:FUNCTION\b|SESSION\b(?!\s*(?:AS\b|\()))", re.IGNORECASE
)
_FORBIDDEN_NODES = (exp.DDL, exp.DML, exp.Command, exp.Into, exp.Lock, exp.UserDefinedFunction)
_ONLY_READS = "run_sql takes one SELECT, SHOW, DESCRIBE or EXPLAIN"


class ReadStatement(NamedTuple):
    """A statement that only reads, without comments; `is_plan` if its answer is a plan."""

    sql: str
    is_plan: bool = False


def read_statement(text: str) -> ReadStatement:
    """Check a statement.

    Args:
        text: in Trino's SQL.

    Raises:
        QuestionError: it is not one statement that only reads.
    """
    if len(text) > LONGEST_STATEMENT:
        raise QuestionError(f"the statement has {len(text):,} characters; at most {LONGEST_STATEMENT:,} are allowed")
    sql, bare = _without_comments(text)
    if _LISTING.fullmatch(sql):
        return ReadStatement(sql)
    explained = _EXPLAIN.match(sql)
    _require_query(sql[explained.end() :] if explained else sql, bare)
    return ReadStatement(sql, explained is not None)


def _without_comments(text: str) -> tuple[str, str]:
    """The statement, and the same with empty literals and quoted names."""
    kept: list[str] = []
    bare: list[str] = []
    place, depth, has_ended = 0, 0, False
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:
            raise QuestionError(f"character {place + 1} of the statement belongs to no token that is allowed")
        place = token.end()
        written = " " if token.lastgroup == "comment" else token[0]
        if has_ended and written.strip(" \t\r\n;"):
            raise QuestionError(f"there is a second statement; {_ONLY_READS}")
        depth += (written in "([") - (written in ")]")
        if depth > _DEEPEST:
            raise QuestionError(f"the statement nests more than {_DEEPEST} brackets")
        if token.lastgroup == "end":
            has_ended = True
            continue
        kept.append(written)
        bare.append("''" if token.lastgroup == "quoted" else written)
    return "".join(kept).strip(), "".join(bare)


def _require_query(sql: str, bare: str) -> None:
    if not _QUERY.match(sql):
        raise QuestionError(f"{_ONLY_READS}; leave out ANALYZE, writes, calls and settings")
    if _BEYOND_READING.search(bare):
        raise QuestionError("table functions, inline functions and session properties are not allowed")
    try:
        parsed = sqlglot.parse(sql, read="trino")
    except (SqlglotError, RecursionError) as error:
        raise QuestionError(f"the statement is not a query that the check can read ({type(error).__name__})") from error
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Query | exp.Values):
        raise QuestionError(_ONLY_READS)
    for node in parsed[0].walk():
        if isinstance(node, _FORBIDDEN_NODES):
            raise QuestionError(f"a query must not hold {node.key.upper()}; {_ONLY_READS}")
        if isinstance(node, exp.Table) and not _is_harmless_source(node.this):
            raise QuestionError("table functions are not allowed; name a table or a view")


def _is_harmless_source(source: exp.Expr) -> bool:
    """Return True for the name of a table, and for `TABLE(sequence(..))`."""
    match source:
        case exp.Identifier():
            return True
        case exp.Anonymous(expressions=[exp.GenerateSeries()]):
            return source.name.upper() == "TABLE"
    return False
