"""The views of sql/views in the running stack: present, described, readable, and read-only."""

import pytest

from gamelake.serving.sql.views import load_views
from tests.stack.game import Game, an_event
from tests.stack.platform import ROOT, Stack
from tests.stack.trino_users import ANALYST, ENGINEER, User, await_answer, fill
from tests.support.eventually import eventually

VIEWS = {view.name: view for view in load_views(ROOT / "sql/views", ROOT / "contracts/games.yaml")}
OWNER = User("views")
DENIED = "PERMISSION_DENIED"
# The catalog service reads the files once a minute.
CORRECTED_SECONDS = 120
# Some tables of a game are refreshed every five minutes.
MADE_SECONDS = 360


@pytest.fixture(scope="module", autouse=True)
def tables(stack: Stack) -> None:
    """Silver and gold of a game, without which there is no view."""
    assert stack.is_healthy("trino")
    assert stack.is_healthy("catalog")
    # As the gateway writes it, an event brings all columns of the newest contract.
    resource = {"item": "gems", "change": 80, "reason": "purchase"}
    Game.of("archery_duel").post_until_taken([an_event(load_ms=400, resource=resource, error={"fatal": False})])
    fill(
        [
            "silver.events",
            "gold.archery_duel_player_agg",
            "gold.all_players",
            "gold.all_player_days",
            "gold.all_sessions",
            "gold.archery_duel_daily_agg",
        ]
    )
    for view in VIEWS:
        await_answer(ENGINEER, f"SELECT count(*) FROM {view}", timeout=MADE_SECONDS)  # noqa: S608 # our own names


@pytest.mark.parametrize("name", VIEWS)
def test_an_analyst_reads_a_view_and_what_its_columns_mean(name: str) -> None:
    described = [(column, meaning) for column, _, _, meaning in ANALYST.ask(f"SHOW COLUMNS FROM {name}")]

    assert sorted(described) == sorted(VIEWS[name].columns)
    assert ANALYST.refusal(f"SELECT count(*) FROM {name}") == ""  # noqa: S608 # our own names


@pytest.mark.parametrize("name", ["silver.events", "gold.archery_duel_player_agg", "gold.archery_duel_daily_agg"])
def test_every_column_of_a_table_says_what_it_means(name: str) -> None:
    columns = {column: meaning for column, _, _, meaning in ANALYST.ask(f"SHOW COLUMNS FROM {name}")}

    assert columns
    assert [column for column, meaning in columns.items() if not meaning] == []


@pytest.mark.parametrize("user", [ANALYST, ENGINEER], ids=lambda user: user.name)
def test_no_user_changes_a_view(user: User) -> None:
    statements = [
        "DROP VIEW silver.purchases",
        "CREATE OR REPLACE VIEW silver.purchases AS SELECT 1 AS one",
        "ALTER VIEW silver.purchases RENAME TO silver.test_mine",
        "COMMENT ON VIEW silver.purchases IS 'mine'",
    ]

    assert {statement: user.refusal(statement) for statement in statements} == dict.fromkeys(statements, DENIED)


def test_the_owner_of_the_views_owns_nothing_else() -> None:
    statements = [
        "CREATE VIEW silver.test_mine AS SELECT 1 AS one",
        "CREATE VIEW bronze.purchases AS SELECT 1 AS one",
        "DROP TABLE silver.events",
        "COMMENT ON TABLE silver.events IS 'mine'",
        "SELECT 1 FROM bronze.events",
        "CALL system.unregister_table('silver', 'events')",
    ]

    assert {statement: OWNER.refusal(statement) for statement in statements} == dict.fromkeys(statements, DENIED)


@pytest.mark.slow
def test_a_view_that_is_gone_comes_back() -> None:
    OWNER.ask("DROP VIEW silver.purchases")

    eventually(ANALYST.sees("SHOW COLUMNS FROM silver.purchases"), timeout=CORRECTED_SECONDS)
