"""The rights of roles in Trino: each role is tried as the wrong one, and the store is asked without Trino."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO

import pytest
import requests
from minio import Minio
from minio.deleteobjects import DeleteObject
from minio.error import S3Error

from gamelake.storage.store import Store, shared_credentials
from tests.stack.object_store import ObjectStore
from tests.stack.platform import SECRETS, Stack
from tests.stack.trino_users import ANALYST, CATALOG, ENGINEER, PORT, User, await_answer, fill, new_table, rows_of

DENIED = "PERMISSION_DENIED"
INNER_TABLES = ("bronze.events", "dead_letters.events")

READS = [
    "SELECT * FROM {table} LIMIT 1",
    'SELECT * FROM {schema}."events$history"',
    'SELECT * FROM {schema}."events$properties"',
    "SELECT * FROM {table} FOR VERSION AS OF 0 LIMIT 1",
    "SHOW STATS FOR {table}",
    "EXPLAIN SELECT count(*) FROM {table}",
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM {table} LIMIT 1)",
]
WRITES = [
    "INSERT INTO {table} SELECT * FROM {table}",
    "DELETE FROM {table}",
    "UPDATE {table} SET event_date = NULL",
    "MERGE INTO {table} USING (VALUES 1) AS other (one) ON false WHEN NOT MATCHED THEN INSERT (event_id) VALUES ('x')",
    "TRUNCATE TABLE {table}",
    "ANALYZE {table}",
]
CHANGES = [
    "CREATE TABLE silver.test_mine (number integer)",
    "CREATE TABLE silver.test_mine AS SELECT 1 AS number",
    "CREATE OR REPLACE TABLE {table} AS SELECT 1 AS number",
    "CREATE VIEW silver.test_mine AS SELECT 1 AS number",
    "CREATE FUNCTION delta.silver.test_mine() RETURNS integer RETURN 1",
    "CREATE SCHEMA test_mine",
    "DROP SCHEMA silver CASCADE",
    "DROP TABLE {table}",
    "ALTER TABLE {table} ADD COLUMN mine integer",
    "ALTER TABLE {table} DROP COLUMN event_id",
    "ALTER TABLE {table} RENAME TO silver.test_mine",
    "ALTER TABLE {table} SET PROPERTIES change_data_feed_enabled = true",
    "COMMENT ON TABLE {table} IS 'mine'",
    "GRANT SELECT ON bronze.events TO USER analyst",
    "CREATE ROLE mine",
]
PROCEDURES = [
    "CALL system.register_table('silver', 'test_mine', 's3://lakehouse/bronze/events')",
    "CALL system.unregister_table('silver', 'events')",
    "CALL system.vacuum('silver', 'events', '7d')",
    "CALL system.flush_metadata_cache()",
    "CALL system.drop_extended_stats('silver', 'events')",
]

# Where the names of tables and columns are listed, and the column that has the schema's name.
LISTINGS = {
    "information_schema.tables": "table_schema",
    "information_schema.columns": "table_schema",
    "system.jdbc.tables": "table_schem",
    "system.jdbc.columns": "table_schem",
}


@pytest.fixture(autouse=True, scope="module")
def filled(stack: Stack) -> None:
    """Each layer has a row, and Trino shows it."""
    assert stack.is_healthy("trino")
    fill(["silver.events", *INNER_TABLES])


def on(table: str, statements: Sequence[str]) -> list[str]:
    """Statements about one table."""
    return [statement.format(table=table, schema=table.split(".", maxsplit=1)[0]) for statement in statements]


def not_denied(user: User, statements: Sequence[str]) -> dict[str, str]:
    """The statements that a user's rights do not forbid, with what came of them."""
    outcomes = {statement: user.refusal(statement) for statement in statements}
    return {statement: outcome for statement, outcome in outcomes.items() if outcome != DENIED}


def test_an_analyst_reads_silver_and_its_history(stack: Stack) -> None:
    failed = {statement: ANALYST.refusal(statement) for statement in on("silver.events", READS)}

    assert {statement: name for statement, name in failed.items() if name} == {}
    assert ANALYST.one("SELECT count(*) FROM silver.events") > 0


def test_an_analyst_reads_gold(stack: Stack) -> None:
    with new_table(stack.lakehouse) as table:
        table.append(number=[7])
        await_answer(ANALYST, rows_of(table.sql))

        assert ANALYST.ask(rows_of(table.sql)) == [[7]]
        assert not_denied(ANALYST, on(table.sql, ["DELETE FROM {table}", "DROP TABLE {table}"])) == {}


@pytest.mark.parametrize("table", INNER_TABLES)
def test_an_analyst_learns_nothing_of_the_inner_layers(table: str) -> None:
    schema = table.split(".", maxsplit=1)[0]

    assert not_denied(ANALYST, [*on(table, READS), f"SHOW TABLES FROM {schema}", f"DESCRIBE {table}"]) == {}
    assert [schema] not in ANALYST.ask("SHOW SCHEMAS")
    for listing, column in LISTINGS.items():
        assert ANALYST.ask(f"{rows_of(listing)} WHERE {column} = '{schema}'") == []


def test_an_engineer_reads_every_layer() -> None:
    for table in ("silver.events", *INNER_TABLES):
        failed = {statement: ENGINEER.refusal(statement) for statement in on(table, READS[:3])}

        assert {statement: name for statement, name in failed.items() if name} == {}


@pytest.mark.parametrize("user", [ANALYST, ENGINEER], ids=lambda user: user.name)
def test_a_reader_writes_and_changes_nothing(user: User) -> None:
    assert not_denied(user, on("silver.events", [*WRITES, *CHANGES])) == {}
    assert not_denied(user, PROCEDURES) == {}


def test_rewriting_files_is_refused_by_the_store_where_trino_does_not_ask_for_rights(stack: Stack) -> None:
    """Trino's rules know no right to `EXECUTE optimize`: a reader may try, and the key of Trino can't write."""
    with new_table(stack.lakehouse) as table:
        for number in range(2):
            table.append(number=[number])
        await_answer(ANALYST, rows_of(table.sql))
        before = Store(stack.lakehouse).paths(table.path)

        for user in (ANALYST, ENGINEER):
            assert user.refusal(f"ALTER TABLE {table.sql} EXECUTE optimize") not in ("", DENIED)
        assert Store(stack.lakehouse).paths(table.path) == before


def test_the_catalog_service_registers_and_reads_no_row() -> None:
    for table in ("silver.events", *INNER_TABLES):
        assert not_denied(CATALOG, on(table, READS)) == {}
    assert not_denied(CATALOG, on("silver.events", WRITES)) == {}
    assert not_denied(CATALOG, [call for call in PROCEDURES if "register" not in call and "flush" not in call]) == {}
    assert not_denied(CATALOG, ["SELECT * FROM system.runtime.queries", "CREATE SCHEMA test_mine"]) == {}


@pytest.mark.parametrize("user", [User("unknown"), User("Analyst"), User("prometheus")], ids=lambda user: user.name)
def test_a_user_without_a_role_gets_nothing(user: User) -> None:
    asked = ["SELECT 1", "SHOW CATALOGS", "SHOW SCHEMAS", *on("silver.events", [*READS, *WRITES]), *PROCEDURES]

    assert not_denied(user, asked) == {}


@pytest.mark.parametrize("user", [ANALYST, ENGINEER, CATALOG], ids=lambda user: user.name)
def test_no_user_becomes_another(user: User) -> None:
    others = [other.name for other in (ANALYST, ENGINEER, CATALOG) if other != user]

    assert not_denied(user, [f"SET SESSION AUTHORIZATION '{other}'" for other in others]) == {}


def test_an_analyst_sets_only_harmless_session_properties() -> None:
    assert (
        not_denied(ANALYST, ["SET SESSION query_priority = 9", "SET SESSION delta.vacuum_min_retention = '0s'"]) == {}
    )
    assert ANALYST.refusal("SET SESSION query_max_run_time = '1m'") == ""


def test_an_analyst_sees_and_stops_own_queries_only() -> None:
    assert (
        not_denied(ANALYST, ["SELECT * FROM system.runtime.queries", "CALL system.runtime.kill_query('x', 'y')"]) == {}
    )
    assert ENGINEER.one("SELECT count(*) FROM system.runtime.queries WHERE \"user\" = 'analyst'") > 0


@pytest.mark.parametrize(
    ("user", "code"), [("prometheus", 200), ("engineer", 200), ("analyst", 403), ("catalog", 403), ("unknown", 403)]
)
def test_metrics_are_for_prometheus_and_the_engineer(user: str, code: int) -> None:
    answer = requests.get(f"http://127.0.0.1:{PORT}/metrics", headers={"X-Trino-User": user}, timeout=60)

    assert answer.status_code == code


@pytest.fixture
def trinos_key(object_store: ObjectStore) -> Minio:
    """The store as Trino reaches it, without Trino."""
    keys = shared_credentials(SECRETS / "object-store-trino", "default")
    own = replace(object_store, access_key=keys["AWS_ACCESS_KEY_ID"], secret_key=keys["AWS_SECRET_ACCESS_KEY"])
    return own.client


def refused(action: Callable[[], object]) -> bool:
    """Whether the store says that the key may not."""
    try:
        action()
    except S3Error as error:
        return bool(error.code == "AccessDenied")
    return False


def test_the_key_of_trino_reads_tables_and_can_not_write_them(trinos_key: Minio, stack: Stack) -> None:
    entry = "silver/events/_delta_log/00000000000000000000.json"
    next_entry = f"silver/events/_delta_log/{10**12:020}.json"

    assert trinos_key.stat_object("lakehouse", entry).size
    for path in (entry, next_entry, "silver/events/new.parquet", "silver/new/x", "_gamelake/x"):
        assert refused(partial(trinos_key.put_object, "lakehouse", path, BytesIO(b"x"), 1))
        assert refused(partial(trinos_key.remove_object, "lakehouse", path))
    errors = list(trinos_key.remove_objects("lakehouse", [DeleteObject(entry)]))
    assert [error.code for error in errors] == ["AccessDenied"]
    assert Store(stack.lakehouse).get(entry)


def test_the_key_of_trino_changes_no_bucket(trinos_key: Minio) -> None:
    assert refused(lambda: trinos_key.remove_bucket("lakehouse"))
    assert refused(lambda: trinos_key.make_bucket("test-of-trino"))
    assert refused(lambda: trinos_key.set_bucket_policy("lakehouse", "{}"))
    assert refused(lambda: trinos_key.delete_bucket_policy("lakehouse"))


def test_a_write_that_trino_allows_is_refused_by_the_store(stack: Stack) -> None:
    """The catalog service's user may change a table in Trino, for it may name it; the key of Trino may not."""
    with new_table(stack.lakehouse) as table:
        table.append(number=[1])
        await_answer(ANALYST, rows_of(table.sql))
        before = Store(stack.lakehouse).paths(table.path)

        assert CATALOG.refusal(f"ALTER TABLE {table.sql} ADD COLUMN mine integer") not in ("", DENIED)
        assert CATALOG.refusal(f"COMMENT ON TABLE {table.sql} IS 'mine'") not in ("", DENIED)
        assert Store(stack.lakehouse).paths(table.path) == before
