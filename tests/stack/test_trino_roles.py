"""The rights of roles in Trino: each role is tried against the data of the others, and the store without Trino."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO

import pytest
import requests
from minio import Minio
from minio.deleteobjects import DeleteObject
from minio.error import S3Error
from trino.auth import BasicAuthentication
from trino.dbapi import connect
from trino.exceptions import TrinoQueryError

from gamelake.objects.store import Store, shared_credentials
from tests.stack.object_store import ObjectStore
from tests.stack.platform import SECRETS, Stack
from tests.stack.trino_users import (
    ADMIN,
    ANALYST,
    CATALOG,
    COMMITTED_SECONDS,
    ENGINEER,
    SUPPORT,
    User,
    await_answer,
    fill,
    new_table,
    rows_of,
)
from tools.stack import ports, url

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


KART_ANALYST, ARCHERY_ANALYST = User("analyst-kart-rumble"), User("analyst-archery-duel")
PEOPLE = (ANALYST, KART_ANALYST, ARCHERY_ANALYST, SUPPORT, ENGINEER, ADMIN)
# A game analyst, the title, and the beginning of the names of the game's tables; the other game's after it.
KART = (KART_ANALYST, "Kart Rumble", "kart_rumble", "archery_duel")
ARCHERY = (ARCHERY_ANALYST, "Archery Duel", "archery_duel", "kart_rumble")
TABLES_OF_ALL_GAMES = ("silver.events", "gold.all_players", "gold.all_player_days", "gold.all_sessions")
VIEWS_OF_ALL_GAMES = ("silver.purchases", "gold.players", "gold.player_days", "gold.players_per_day", "gold.sessions")
TABLES_OF_PLAYERS = ("silver.events", "silver.kart_rumble_events", "gold.kart_rumble_player_agg", "gold.all_players")
MASKED = re.compile("[0-9a-f]{16}")


@pytest.fixture(autouse=True, scope="module")
def filled(stack: Stack) -> None:
    """Each layer has a row, silver and gold have rows of two games, and Trino shows them."""
    assert stack.is_healthy("trino")
    fill(["silver.archery_duel_events", "gold.archery_duel_player_agg", "gold.archery_duel_daily_agg", *INNER_TABLES])
    fill(["silver.kart_rumble_events", "gold.kart_rumble_player_agg", "gold.kart_rumble_daily_agg"], "Kart Rumble")
    fill(["silver.events", *TABLES_OF_ALL_GAMES, *VIEWS_OF_ALL_GAMES[1:]])
    for table in TABLES_OF_ALL_GAMES:
        for title in ("Kart Rumble", "Archery Duel"):
            await_answer(ENGINEER, of_game(table, title), timeout=COMMITTED_SECONDS)


def of_game(table: str, title: str) -> str:
    """The question for a row of one game."""
    return f"SELECT 1 FROM {table} WHERE game_name = '{title}' LIMIT 1"  # noqa: S608 # names of our own


def on(table: str, statements: Sequence[str]) -> list[str]:
    return [statement.format(table=table, schema=table.split(".", maxsplit=1)[0]) for statement in statements]


def not_denied(user: User, statements: Sequence[str]) -> dict[str, str]:
    """Return the statements that a user's rights do not forbid, and their outcomes."""
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


@pytest.mark.parametrize(("user", "title", "game", "other"), [KART, ARCHERY], ids=["kart", "archery"])
def test_a_game_analyst_reads_the_rows_of_one_game(user: User, title: str, game: str, other: str) -> None:
    assert other != game
    for table in (*TABLES_OF_ALL_GAMES, *VIEWS_OF_ALL_GAMES):
        titles = {row[0] for row in user.ask(f"SELECT DISTINCT game_name FROM {table}")}  # noqa: S608 # our own names
        assert titles <= {title}
        if table in TABLES_OF_ALL_GAMES:
            assert titles == {title}
    for table in (f"silver.{game}_events", f"gold.{game}_player_agg", f"gold.{game}_daily_agg"):
        assert user.ask(f"SELECT 1 FROM {table} LIMIT 1") == [[1]]  # noqa: S608 # our own names


@pytest.mark.parametrize(("user", "title", "game", "other"), [KART, ARCHERY], ids=["kart", "archery"])
def test_a_game_analyst_counts_as_many_rows_as_an_engineer_of_that_game(
    user: User, title: str, game: str, other: str
) -> None:
    assert other != game
    mine = f"SELECT count(*) FROM silver.events FOR VERSION AS OF {version_of_events()}"  # noqa: S608 # a number

    assert user.one(mine) == ENGINEER.one(f"{mine} WHERE game_name = '{title}'")
    assert user.one(f"{mine} WHERE game_name <> '{title}'") == 0


def version_of_events() -> int:
    """A version of silver.events, which gets new rows all the time."""
    return int(ENGINEER.one('SELECT max(version) FROM silver."events$history"'))


@pytest.mark.parametrize(("user", "title", "game", "other"), [KART, ARCHERY], ids=["kart", "archery"])
def test_a_game_analyst_learns_nothing_of_other_games(user: User, title: str, game: str, other: str) -> None:
    assert title
    tables = [f"silver.{other}_events", f"gold.{other}_player_agg", f"gold.{other}_daily_agg", *INNER_TABLES]
    statements = [on(table, ["SELECT * FROM {table} LIMIT 1", "DESCRIBE {table}"]) for table in tables]

    assert not_denied(user, [each for group in statements for each in group]) == {}
    hidden = ["events$history", "events$partitions", "events$transactions", f"{other}_events$history"]
    assert not_denied(user, [f'SELECT * FROM silver."{name}"' for name in hidden]) == {}  # noqa: S608 # our own names
    for schema in ("silver", "gold"):
        names = {row[0] for row in user.ask(f"SHOW TABLES FROM {schema}")}
        assert {name for name in names if other in name} == set()
        assert {name for name in names if game in name} != set()
    assert [row[0] for row in user.ask("SHOW SCHEMAS") if row[0] not in ("information_schema", "silver", "gold")] == []


@pytest.mark.parametrize("user", [ANALYST, KART_ANALYST], ids=lambda user: user.name)
def test_an_analyst_reads_no_pseudonym(user: User) -> None:
    for table in TABLES_OF_PLAYERS:
        asked = f"SELECT DISTINCT gamer_id FROM {table} WHERE gamer_id IS NOT NULL"  # noqa: S608 # our own names
        read = {row[0] for row in user.ask(f"{asked} LIMIT 100")}
        pseudonyms = {row[0] for row in SUPPORT.ask(asked)}

        assert pseudonyms
        assert [name for name in read if not MASKED.fullmatch(name)] == []
        assert not read & pseudonyms
        found = f"SELECT count(*) FROM {table} WHERE gamer_id = '{min(pseudonyms)}'"  # noqa: S608 # a pseudonym
        assert (user.one(found), SUPPORT.one(found) > 0) == (0, True)


def test_a_masked_pseudonym_is_the_same_in_tables_and_views() -> None:
    both = (
        "SELECT count(*) FROM (SELECT gamer_id, game_name FROM gold.players EXCEPT "
        "SELECT gamer_id, game_name FROM gold.all_players)"
    )

    assert ANALYST.one(both) == 0
    assert ANALYST.one("SELECT count(*) FROM gold.players") > 0


def test_players_are_counted_right_by_masked_pseudonyms() -> None:
    counted = f"SELECT count(DISTINCT gamer_id) FROM silver.events FOR VERSION AS OF {version_of_events()}"  # noqa: S608

    assert ANALYST.one(counted) == ENGINEER.one(counted) > 0


def test_an_analyst_reads_no_bounds_of_pseudonyms() -> None:
    """The entries of a table's log have the least and the greatest value of each column."""
    hidden = ["events$partitions", "events$transactions", "kart_rumble_events$transactions"]

    for user in (ANALYST, KART_ANALYST):
        assert not_denied(user, [f'SELECT * FROM silver."{name}"' for name in hidden]) == {}  # noqa: S608 # our own names


def test_support_finds_the_rows_of_a_player_and_reads_no_raw_record() -> None:
    player = SUPPORT.one("SELECT min(gamer_id) FROM silver.events WHERE gamer_id IS NOT NULL")
    rows = f"SELECT count(*) FROM silver.events WHERE gamer_id = '{player}'"  # noqa: S608 # a pseudonym

    assert SUPPORT.one(rows) > 0
    for table in INNER_TABLES:
        assert not_denied(SUPPORT, on(table, [*READS, "DESCRIBE {table}"])) == {}
    assert not_denied(SUPPORT, ["SELECT * FROM system.runtime.queries"]) == {}


def test_the_admin_reads_every_layer_and_writes_no_row() -> None:
    for table in ("silver.events", *INNER_TABLES):
        assert [each for each in on(table, READS[:3]) if ADMIN.refusal(each)] == []
    assert not_denied(ADMIN, on("silver.events", WRITES)) == {}


def test_an_engineer_reads_every_layer() -> None:
    for table in ("silver.events", *INNER_TABLES):
        failed = {statement: ENGINEER.refusal(statement) for statement in on(table, READS[:3])}

        assert {statement: name for statement, name in failed.items() if name} == {}


@pytest.mark.parametrize("user", [ANALYST, KART_ANALYST, SUPPORT, ENGINEER], ids=lambda user: user.name)
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


def test_a_user_who_may_read_metrics_only_gets_nothing_else() -> None:
    asked = ["SELECT 1", "SHOW CATALOGS", "SHOW SCHEMAS", *on("silver.events", [*READS, *WRITES]), *PROCEDURES]

    assert not_denied(User("prometheus"), asked) == {}


def login(user: str, password: str) -> int:
    """The status with which Trino responds to a statement of a user with this password; none if it is empty."""
    headers, auth = {"X-Trino-User": user}, (user, password) if password else None
    address = f"{url('TRINO_PORT')}/v1/statement"
    return requests.post(address, "SELECT 1", headers=headers, auth=auth, timeout=60).status_code


@pytest.mark.parametrize("user", ["analyst", "admin", "Analyst", "unknown"])
def test_a_wrong_password_is_refused(user: str) -> None:
    assert login(user, "a-wrong-password") == 401
    assert login(user, ENGINEER.access.password) == 401


@pytest.mark.parametrize("user", ["analyst", "admin", "catalog", "unknown"])
def test_a_user_without_a_password_is_refused(user: str) -> None:
    assert login(user, "") == 401


def test_a_user_who_logs_in_runs_no_query_as_another_one() -> None:
    access = ANALYST.access
    connection = connect(  # type: ignore[no-untyped-call] # untyped
        host=access.host, port=access.port, http_scheme=access.scheme, user="engineer",
        auth=BasicAuthentication(access.user, access.password),
    )  # fmt: skip

    with pytest.raises(TrinoQueryError, match="User analyst cannot impersonate user engineer"):
        connection.cursor().execute("SELECT 1")


def test_trino_does_not_respond_by_plain_http() -> None:
    with pytest.raises(requests.ConnectionError):
        requests.get(f"http://127.0.0.1:{ports()['TRINO_PORT']}/v1/info", timeout=60)


def test_a_client_that_does_not_trust_the_authority_sends_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"{url('TRINO_PORT')}/v1/info"
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")

    with pytest.raises(requests.exceptions.SSLError):
        requests.get(address, timeout=60)


@pytest.mark.parametrize("user", [*PEOPLE, CATALOG], ids=lambda user: user.name)
def test_no_user_becomes_another(user: User) -> None:
    others = [other.name for other in (*PEOPLE, CATALOG) if other != user]

    assert not_denied(user, [f"SET SESSION AUTHORIZATION '{other}'" for other in others]) == {}


def test_an_analyst_sets_only_harmless_session_properties() -> None:
    assert (
        not_denied(ANALYST, ["SET SESSION query_priority = 9", "SET SESSION delta.vacuum_min_retention = '0s'"]) == {}
    )
    for limit in ("query_max_run_time = '1m'", "query_max_cpu_time = '1m'", "query_max_scan_physical_bytes = '1GB'"):
        assert ANALYST.refusal(f"SET SESSION {limit}") == ""


def test_an_analyst_sees_and_stops_own_queries_only() -> None:
    assert (
        not_denied(ANALYST, ["SELECT * FROM system.runtime.queries", "CALL system.runtime.kill_query('x', 'y')"]) == {}
    )
    assert ENGINEER.one("SELECT count(*) FROM system.runtime.queries WHERE \"user\" = 'analyst'") > 0


@pytest.mark.parametrize(
    ("user", "code"),
    [("prometheus", 200), ("engineer", 200), ("admin", 200), ("analyst", 403), ("support", 403), ("catalog", 403)],
)
def test_metrics_are_for_prometheus_the_engineer_and_the_admin(user: str, code: int) -> None:
    auth = (user, User(user).access.password)

    assert requests.get(f"{url('TRINO_PORT')}/metrics", auth=auth, timeout=60).status_code == code


@pytest.fixture
def trinos_key(object_store: ObjectStore) -> Minio:
    """The store as Trino reaches it, without Trino."""
    keys = shared_credentials(SECRETS / "object-store-trino", "default")
    own = replace(object_store, access_key=keys["AWS_ACCESS_KEY_ID"], secret_key=keys["AWS_SECRET_ACCESS_KEY"])
    return own.client


def refused(action: Callable[[], object]) -> bool:
    """Return True if the store says that the key may not."""
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
