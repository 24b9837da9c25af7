"""The check of an agent's statement: one that only reads passes, and nothing else does."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.model.errors import QuestionError
from gamelake.serving.sql.questions import load_questions
from services.agents.statements import LONGEST_STATEMENT, ReadStatement, read_statement
from tests.unit.properties import examples

QUESTIONS = load_questions(Path("sql/questions"))
READS = [
    "SELECT 1",
    "select 1;",
    "(SELECT 1) UNION ALL (VALUES 2)",
    "VALUES 1, 2",
    "WITH session AS (SELECT 1 AS one) SELECT one FROM session",
    "SELECT * FROM silver.events FOR VERSION AS OF 3 WHERE event_name = 'DROP TABLE x; DELETE'",
    'SELECT "$file_modified_time" FROM silver.events -- new ones',
    "SELECT hour FROM TABLE(sequence(0, 23)) AS hours (hour)",
    "SELECT count(*) FILTER (WHERE amount > 1) FROM silver.events, UNNEST(ARRAY[1, 2]) AS two (number)",
    "SHOW CATALOGS",
    "SHOW TABLES FROM delta.silver LIKE 'kart\\_%' ESCAPE '\\'",
    "SHOW COLUMNS FROM silver.events",
    "SHOW CREATE VIEW silver.purchases",
    "DESCRIBE silver.events",
    "EXPLAIN SELECT 1",
    "EXPLAIN (TYPE VALIDATE) SELECT 1",
]
WRITES = [
    "INSERT INTO gold.t SELECT 1",
    "DELETE FROM gold.t",
    "UPDATE gold.t SET a = 1",
    "MERGE INTO gold.t USING (VALUES 1) AS o (a) ON false WHEN NOT MATCHED THEN INSERT (a) VALUES (1)",
    "TRUNCATE TABLE gold.t",
    "CREATE TABLE gold.t AS SELECT 1 AS a",
    "CREATE OR REPLACE VIEW gold.v AS SELECT 1 AS a",
    "DROP TABLE gold.t",
    "ALTER TABLE gold.t EXECUTE optimize",
    "COMMENT ON TABLE gold.t IS 'x'",
    "GRANT SELECT ON gold.t TO USER analyst",
    "CALL system.flush_metadata_cache()",
    "ANALYZE gold.t",
    "REFRESH MATERIALIZED VIEW gold.v",
]
OTHERS = [
    "",
    ";",
    "SET SESSION query_max_run_time = '1d'",
    "SET SESSION AUTHORIZATION 'admin'",
    "RESET SESSION query_max_run_time",
    "SET ROLE admin",
    "USE delta.gold",
    "PREPARE p FROM DELETE FROM gold.t",
    "EXECUTE IMMEDIATE 'DELETE FROM gold.t'",
    "EXPLAIN ANALYZE SELECT count(*) FROM silver.events",
    "EXPLAIN (TYPE IO) SELECT 1 FROM silver.events",
    "EXPLAIN (FORMAT JSON) SELECT 1 FROM silver.events",
    "EXPLAIN DELETE FROM gold.t",
    "EXPLAIN EXPLAIN SELECT 1",
    "SHOW STATS FOR silver.events",
    "SHOW SESSION",
    "SHOW TABLES FROM silver; DELETE FROM gold.t",
    "WITH SESSION query_max_run_time = '1d' SELECT 1",
    "WITH FUNCTION f() RETURNS bigint RETURN 1 SELECT f()",
    "WITH t AS (DELETE FROM gold.t) SELECT 1",
    "SELECT 1 INTO gold.t",
    "SELECT * FROM gold.t FOR UPDATE",
    "TABLE gold.t",
]
TABLE_FUNCTIONS = [
    "TABLE(delta.system.table_changes('silver', 'events', 0))",
    "TABLE(system.query(query => 'SELECT 1'))",
    "TABLE(exclude_columns(input => TABLE(silver.events), columns => DESCRIPTOR(gamer_id)))",
    "table /* a */ (f())",
    "TABLE\t\n(f(1, 2))",
    "table_changes('silver', 'events', 0)",
    "LATERAL (SELECT * FROM TABLE(f()))",
    "TABLE(sequence(0, 1)), TABLE(f())",
]
_FIRST_WORD = re.compile(
    r"(?:EXPLAIN\s+(?:\(\s*TYPE\s+\w+\s*\)\s*)?)?\(*\s*(?:SELECT|WITH|VALUES)\b|(?:SHOW|DESCRIBE|DESC)\s", re.IGNORECASE
)
# The only way to call a table function in Trino; `sequence` alone reads no table.
_TABLE_FUNCTION = re.compile(r"\bTABLE\s*\((?!\s*SEQUENCE\s*\()", re.IGNORECASE)
# What one parser may take for a comment, a literal or white space and another one not.
SEAMS = [
    " ", "\n", "\r", "\t", "--", "--\n", "-- x\r", "/*", "*/", "/**/", "/*+", "'", "''", '"', "`", "$$", "{#", "#}",
    "{{", ";", "\\", "\x00", "\x85", "\u2028", "U&'", "X'", "(", ")", "#", "//", "?", "E'",
]  # fmt: skip


def passes(text: str) -> ReadStatement | None:
    try:
        return read_statement(text)
    except QuestionError:
        return None


def bare(sql: str) -> str:
    """A statement without comments, with empty literals and names in quotes, by Trino's lexical rules."""
    return re.sub(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""", "''", sql)


@pytest.mark.parametrize("sql", READS)
def test_a_statement_that_reads_passes(sql: str) -> None:
    assert passes(sql) is not None


@pytest.mark.parametrize("name", QUESTIONS)
def test_each_worked_question_passes(name: str) -> None:
    statement = passes(QUESTIONS[name].sql)

    assert statement is not None
    assert "--" not in bare(statement.sql)


@pytest.mark.parametrize("sql", [*WRITES, *OTHERS])
def test_any_other_statement_is_refused(sql: str) -> None:
    assert passes(sql) is None


@pytest.mark.parametrize("source", TABLE_FUNCTIONS)
@pytest.mark.parametrize(
    "query", ["SELECT * FROM {}", "SELECT 1 WHERE EXISTS (SELECT * FROM {})", "EXPLAIN SELECT * FROM {}"]
)
def test_a_table_function_is_refused(query: str, source: str) -> None:
    assert passes(query.format(source)) is None


def test_trino_gets_a_statement_without_its_comments() -> None:
    statement = read_statement("SELECT 1 -- ' one\n/* \" two */ + 2 AS \"a--b\", '/* x */'")

    assert statement.sql.split() == ["SELECT", "1", "+", "2", "AS", '"a--b",', "'/*", "x", "*/'"]


def test_a_comment_that_ends_earlier_for_trino_hides_nothing() -> None:
    assert passes("/* /* */ DELETE FROM gold.t -- */\nSELECT 1") is None
    assert passes("SELECT 1 /* /* */ ; DELETE FROM gold.t /* */ */") is None


def test_a_long_or_deep_statement_is_refused_without_reading_it() -> None:
    assert passes(f"SELECT '{'x' * LONGEST_STATEMENT}'") is None
    assert passes(f"SELECT {'(' * 60}1{')' * 60}") is None


def test_an_explained_query_is_a_plan() -> None:
    assert [read_statement(sql).is_plan for sql in ("EXPLAIN SELECT 1", "SELECT 1")] == [True, False]


@examples(300)
@given(
    read=st.sampled_from(READS),
    write=st.sampled_from([*WRITES, *OTHERS[2:9]]),
    seams=st.lists(st.sampled_from(SEAMS), max_size=6),
    place=st.integers(0, 200),
)
def test_no_write_is_hidden_in_a_statement_that_reads(read: str, write: str, seams: list[str], place: int) -> None:
    """Trino decides by the first word whether a statement writes."""
    half = len(seams) // 2
    text = f"{read[:place]}{''.join(seams[:half])} {write} {''.join(seams[half:])}{read[place:]}"

    statement = passes(text)

    assert statement is None or is_one_read(statement.sql)


def is_one_read(sql: str) -> bool:
    """Return True for one statement whose first word, after EXPLAIN, is that of a statement that reads."""
    return ";" not in bare(sql) and _FIRST_WORD.match(bare(sql)) is not None


@examples(300)
@given(parts=st.lists(st.sampled_from([*READS, *WRITES, *SEAMS, ";", "; "]), max_size=8))
def test_what_passes_is_one_statement(parts: list[str]) -> None:
    statement = passes("".join(parts))

    assert statement is None or is_one_read(statement.sql)


@examples(300)
@given(text=st.text(max_size=80))
def test_any_text_is_refused_or_passes(text: str) -> None:
    passes(text)


@examples(200)
@given(
    source=st.sampled_from(TABLE_FUNCTIONS),
    around=st.sampled_from(
        ["SELECT * FROM {}", "SELECT (SELECT max(a) FROM {})", "WITH t AS (SELECT * FROM {}) SELECT * FROM t"]
    ),
    seams=st.lists(st.sampled_from(SEAMS), max_size=3),
)
def test_no_table_function_gets_through_between_seams(source: str, around: str, seams: list[str]) -> None:
    statement = passes(around.format("".join(seams) + source))

    assert statement is None or not _TABLE_FUNCTION.search(bare(statement.sql))
