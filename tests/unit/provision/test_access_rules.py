"""Trino's rules, as they are generated from the access contract: each role against each other's data."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gamelake.contract.access import RoleGames, load_access
from gamelake.contract.aggregates import Over
from gamelake.contract.games import load_games
from gamelake.layers.silver import COMMON_SCHEMA
from gamelake.model.naming import ACQUISITION_COST, STORE_SALES, Layer
from gamelake.serving.experiments.tables import RESULTS, STATISTICS, exposure_table
from gamelake.serving.kpis.tables import ALL as KPI_TABLES
from gamelake.serving.live_ops.signals.watch_tables import MINUTES, MINUTES_SCHEMA, SIGNALS, SIGNALS_SCHEMA
from gamelake.serving.live_ops.states.player_table import PLAYER_STATE, ROW_SCHEMA
from gamelake.serving.money.acquisition_cost import TABLE as ACQUISITION_COST_TABLE
from gamelake.serving.money.store_reports import TABLE as STORE_SALES_TABLE
from gamelake.serving.players.tables import SEGMENTS
from gamelake.serving.sql.dialects import names_in
from gamelake.serving.sql.views import load_views
from services.provision.access import ACCESS, GAMES, RULES, SETTINGS, VIEWS, AccessRules, generate, mask

CONTRACT = load_games(GAMES)
RULES_OF = AccessRules(load_access(ACCESS, CONTRACT), CONTRACT, load_views(VIEWS, GAMES))
DOCUMENT = RULES_OF.document()
PEOPLE = ("analyst", "analyst-archery-duel", "analyst-kart-rumble", "support", "engineer", "admin")
MASK = mask("gamer_id")
TABLES = (
    "silver.events", "silver.purchases", "silver.kart_rumble_events", "silver.archery_duel_events",
    "silver.an_unlisted_game_events", "gold.kart_rumble_player_agg", "gold.archery_duel_player_agg",
    "gold.all_player_days", "gold.players", "gold.versions_per_day", "gold.kpi_daily", "gold.live_ops_player_state",
    "gold.quality", "gold.validations", "clones.one_events", "bronze.events", "dead_letters.events",
    "quarantine.events", "lineage.events",
)  # fmt: skip
KART_RUMBLE = {
    "silver.events", "silver.purchases", "silver.kart_rumble_events", "gold.kart_rumble_player_agg",
    "gold.all_player_days", "gold.players", "gold.kpi_daily", "gold.live_ops_player_state",
}  # fmt: skip
READABLE = {
    "analyst": {table for table in TABLES if table.startswith(("silver.", "gold.", "clones."))},
    "analyst-kart-rumble": KART_RUMBLE,
    "analyst-archery-duel": {table.replace("kart_rumble", "archery_duel") for table in KART_RUMBLE},
    "support": {table for table in TABLES if table.startswith(("silver.", "gold."))},
    "engineer": set(TABLES),
    "admin": set(TABLES),
    "catalog": set(),
    "views": {table for table in TABLES if table.startswith(("silver.", "gold."))},
    "prometheus": set(),
    "superset": set(),
    "unknown": set(),
    "analyst-kart": set(),
}


@dataclass(frozen=True, slots=True)
class Access:
    """What the first rule that matches gives."""

    privileges: tuple[str, ...]
    filter: str = ""
    masks: tuple[tuple[str, str], ...] = ()


def access(user: str, table: str) -> Access:
    """The access of a user to a table, as Trino evaluates the rules: the first that matches in all its patterns."""
    schema, _, name = table.partition(".")
    asked = {"user": user, "catalog": "delta", "schema": schema, "table": name}
    rule = first("tables", asked)
    masks = tuple((str(each["name"]), str(each["mask"])) for each in rule.get("columns", ()))
    return Access(tuple(rule["privileges"]), str(rule.get("filter", "")), masks)


def first(section: str, asked: Mapping[str, str]) -> Mapping[str, Any]:
    rules: Iterable[Mapping[str, Any]] = DOCUMENT[section]
    return next(
        rule
        for rule in rules
        if all(re.fullmatch(str(rule[key]), value) for key, value in asked.items() if key in rule)
    )


def test_the_committed_rules_are_those_of_the_contract() -> None:
    assert {name: (SETTINGS / name).read_text(encoding="utf-8") for name in generate()} == generate()


def test_people_may_log_in_at_a_provider_and_services_may_not() -> None:
    names = re.compile(generate()["people"].rstrip())

    assert {user.name for user in RULES_OF.access.users if names.fullmatch(user.name)} == set(PEOPLE)


def test_superset_acts_as_people_who_cannot_change_the_server_and_reads_nothing_itself() -> None:
    (rule,) = DOCUMENT["impersonation"]
    acting, people = re.compile(str(rule["original_user"])), re.compile(str(rule["new_user"]))

    assert {user.name for user in RULES_OF.access.users if acting.fullmatch(user.name)} == {"superset"}
    assert {user.name for user in RULES_OF.access.users if people.fullmatch(user.name)} == set(PEOPLE) - {"admin"}


def test_those_people_may_log_in_to_superset_and_who_stops_queries_administers_it() -> None:
    roles = json.loads(generate()["dashboard-users.json"])

    assert roles.keys() == set(PEOPLE) - {"admin"}
    assert {name for name, role in roles.items() if role == "Admin"} == {"engineer"}


@pytest.mark.parametrize("user", READABLE)
def test_a_user_reads_the_tables_of_the_role_and_no_others(user: str) -> None:
    assert {table for table in TABLES if "SELECT" in access(user, table).privileges} == READABLE[user]


@pytest.mark.parametrize("user", READABLE)
def test_no_user_may_write_rows(user: str) -> None:
    writing = {"INSERT", "UPDATE", "DELETE", "GRANT_SELECT"}

    assert {table for table in TABLES if writing & set(access(user, table).privileges)} == set()


def test_only_the_services_and_the_admin_own_tables_and_views() -> None:
    owners = {user for user in READABLE for table in TABLES if "OWNERSHIP" in access(user, table).privileges}

    assert owners == {"admin", "catalog", "views"}


@pytest.mark.parametrize("user", ["analyst-archery-duel", "analyst-kart-rumble"])
def test_a_game_analyst_reads_a_table_of_all_games_through_a_filter_by_game(user: str) -> None:
    name = user.removeprefix("analyst-").replace("-", "_")
    (game,) = (game for game in CONTRACT.games if game.name == name)

    for table, column in RULES_OF.tables_of_all_games().items():
        value = game.game_name if column == "game_name" else game.name
        assert access(user, table) == Access(("SELECT",), f"{column} IN ('{value}')", (("gamer_id", MASK),))


def test_a_game_analyst_reads_tables_of_no_game_as_they_are() -> None:
    assert access("analyst-archery-duel", "gold.currency_rates") == Access(("SELECT",))
    assert set(RULES_OF.access.tables_of_no_game) == {"gold.currency_rates"}


def test_a_quote_in_a_title_does_not_end_the_filter(tmp_path: Path) -> None:
    games = tmp_path / "games.yaml"
    shutil.copy(GAMES.with_name("metrics.yaml"), tmp_path)
    games.write_text(GAMES.read_text().replace("match: [Kart Rumble]", 'match: [Kart Rumble, "Kart\'s OR 1=1"]'))

    assert "game_name IN ('Kart Rumble', 'Kart''s OR 1=1')" in generate(games=games)["rules.json"]


@pytest.mark.parametrize("user", [user for user in PEOPLE if user.startswith("analyst")])
def test_an_analyst_reads_pseudonyms_masked_in_every_table(user: str) -> None:
    views = {view.name for view in RULES_OF.views}

    for table in READABLE[user] - views:
        assert access(user, table).masks == (("gamer_id", MASK),)


@pytest.mark.parametrize("user", ["support", "engineer", "admin", "views"])
def test_other_readers_see_pseudonyms_and_all_rows(user: str) -> None:
    assert {access(user, table).masks for table in READABLE[user]} == {()}
    assert {access(user, table).filter for table in READABLE[user]} == {""}


def test_views_are_neither_filtered_nor_masked_twice() -> None:
    """They read with the rights of the user who queries them."""
    for user in PEOPLE:
        for view in RULES_OF.views:
            assert access(user, view.name).filter == ""
            assert access(user, view.name).masks == ()


def test_a_game_analyst_reads_what_the_visible_views_are_made_of() -> None:
    for view in RULES_OF.views:
        if "SELECT" in access("analyst-kart-rumble", view.name).privileges:
            assert [name for name in names_in(view.sql) if not access("analyst-kart-rumble", name).privileges] == []


@pytest.mark.parametrize("user", [user for user in PEOPLE if user.startswith("analyst")])
@pytest.mark.parametrize("suffix", ["$partitions", "$transactions", "$files"])
def test_an_analyst_reads_no_bounds_of_masked_columns(user: str, suffix: str) -> None:
    assert {table for table in TABLES if access(user, table + suffix).privileges} == set()


def test_histories_are_readable_of_the_tables_that_are_readable_without_a_filter() -> None:
    assert access("analyst", "silver.events$history").privileges == ("SELECT",)
    assert access("analyst-kart-rumble", "silver.kart_rumble_events$history").privileges == ("SELECT",)
    for table in ("silver.events$history", "silver.archery_duel_events$history", "gold.all_players$properties"):
        assert access("analyst-kart-rumble", table).privileges == ()


@pytest.mark.parametrize(
    ("user", "allowed"),
    [
        ("engineer", {"read"}),
        ("admin", {"read", "write"}),
        ("prometheus", {"read"}),
        *((user, set()) for user in ("analyst", "analyst-kart-rumble", "support", "catalog", "views", "unknown")),
    ],
)
def test_metrics_are_for_prometheus_the_engineer_and_the_admin(user: str, allowed: set[str]) -> None:
    assert set(first("system_information", {"user": user})["allow"]) == allowed


@pytest.mark.parametrize("user", PEOPLE)
def test_only_engineer_and_admin_stop_queries_of_others(user: str) -> None:
    rule = first("queries", {"user": user, "queryOwner": "someone"})

    assert ("kill" in rule["allow"]) is (user in {"engineer", "admin"})


def test_every_table_of_all_games_in_the_code_is_in_the_contract() -> None:
    """Those of the data's quality are for people who see all games."""
    schemas: dict[str, pa.Schema] = {
        "silver.events": COMMON_SCHEMA,
        STORE_SALES: STORE_SALES_TABLE.schema,
        ACQUISITION_COST: ACQUISITION_COST_TABLE.schema,
        PLAYER_STATE: ROW_SCHEMA,
        MINUTES: MINUTES_SCHEMA,
        SIGNALS: SIGNALS_SCHEMA,
        **{table.path: table.schema for table in (*KPI_TABLES, RESULTS, SEGMENTS, STATISTICS, exposure_table({}))},
    }
    columns = {"game", "game_name"}
    found = {path.replace("/", "."): (columns & set(schema.names)).pop() for path, schema in schemas.items()}

    assert dict(RULES_OF.access.tables_of_all_games) == found
    for schema in schemas.values():
        assert {name for name in schema.names if "gamer" in name} <= set(RULES_OF.access.pseudonyms)


def test_aggregates_over_all_games_are_divided_by_game() -> None:
    aggregates = {f"gold.{each.name}" for each in CONTRACT.aggregates if each.over is Over.ALL_GAMES}

    assert aggregates <= RULES_OF.tables_of_all_games().keys()


def test_a_game_whose_name_begins_as_anothers_is_not_in_its_rules() -> None:
    for user in RULES_OF.access.users:
        if RULES_OF.access.role_of(user).games is RoleGames.OWN:
            for layer in (Layer.SILVER, Layer.GOLD):
                assert not access(user.name, f"{layer}.{user.games[0]}_two_events").privileges


def test_a_file_by_hand_is_refused_and_rewritten(tmp_path: Path) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text("{}")
    command = [sys.executable, "-m", "services.provision.access", "--settings", str(tmp_path)]

    checked = subprocess.run([*command, "--check"], capture_output=True, text=True, check=False)
    subprocess.run([*command, "--write"], check=True)

    assert checked.returncode == 2
    assert "run 'python -m services.provision.access --write'" in checked.stderr + checked.stdout
    assert json.loads(rules.read_text()) == json.loads(RULES.read_text())
    assert subprocess.run([*command, "--check"], check=False).returncode == 0
