"""A player of the stack gets their data, and is forgotten: in PostgreSQL, and in the tables on the object store.

The audit has what was asked about the player, under the pseudonym alone.
"""

import json
import subprocess
import time
import uuid
from dataclasses import dataclass, field

import pytest
import requests
from deltalake import DeltaTable

from gamelake.contract.games import load_games
from gamelake.objects.store import Store
from gamelake.privacy.scan import Scanner
from gamelake.privacy.scanned_topics import scan_topics
from gamelake.scans.search_terms import SearchTerms
from services.gateway.authentication import (
    KEY_HEADER,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    GameKey,
    Role,
    read_keys,
    sign,
)
from services.gateway.support_endpoint import PLAYERS_PATH, signed_text
from tests.stack.game import Game, an_event
from tests.stack.platform import ROOT, SECRETS, Stack
from tests.stack.trino_users import ADMIN, SUPPORT, await_answer
from tests.support.eventually import eventually
from tools.stack import AUTHORITY, gateway_url, is_encrypted, kafka

GAME, TABLE = "archery_duel", "silver/archery_duel_events"
TABLES = (TABLE, "silver/events")
DATABASES = {"postgres": "/var/lib/postgresql", "kafka": "/var/lib/kafka"}


@dataclass(frozen=True, slots=True)
class Person:
    """A player, with a mark in all personal data."""

    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def event(self) -> dict[str, object]:
        personal = {"email": f"{self.mark}@example.com", "free_text": f"I am {self.mark}"}
        return an_event(
            game_name="Archery Duel",
            gamer_id=f"gamer-{self.mark}",
            event_params={"device_id": f"device-{self.mark}"},
            personal=personal,
        )


@pytest.fixture
def game(stack: Stack) -> Game:
    stack.await_health("ingest")
    return Game.of(GAME)


def privacy(stack: Stack, job: str, *arguments: str) -> str:
    """Run a job with the rights of the privacy service."""
    run = ("--profile", "tools", "run", "--rm", "--no-TTY", "privacy")
    return stack.compose(*run, "python", "-m", f"jobs.{job}", "--game", GAME, *arguments)


def ask_as_support(method: str, player: str) -> requests.Response:
    """A signed request of support staff about a player, with a key that is made if there is none."""
    keys = [key for key in _keys() if key.game == GAME and key.role is Role.SUPPORT]
    if not keys:
        subprocess.run([ROOT / "compose/game_key.sh", "support", GAME], check=True, capture_output=True)
        keys = [key for key in _keys() if key.game == GAME and key.role is Role.SUPPORT]
    timestamp = str(int(time.time()))
    signature = sign(keys[0].secrets[0].encode(), timestamp, signed_text(method, player))
    headers = {KEY_HEADER: keys[0].id, TIMESTAMP_HEADER: timestamp, SIGNATURE_HEADER: signature}
    trusted = str(AUTHORITY) if is_encrypted() else True
    return requests.request(method, gateway_url() + PLAYERS_PATH + player, headers=headers, verify=trusted, timeout=60)


def _keys() -> list[GameKey]:
    return list(read_keys(SECRETS / "ingest-keys/keys.yaml", load_games(ROOT / "contracts/games.yaml")).values())


def pseudonyms(stack: Stack, table: str, ids: set[str]) -> dict[str, str]:
    """Under which names events stand in a table."""
    location = stack.lakehouse
    handle = DeltaTable(location.child(table), storage_options=dict(location.options))
    rows = handle.to_pyarrow_table(columns=["event_id", "gamer_id"], filters=[("event_id", "in", sorted(ids))])
    return dict(zip(rows["event_id"].to_pylist(), rows["gamer_id"].to_pylist(), strict=True))


def gold_players(stack: Stack) -> set[str]:
    """The players with a row in the game's table of players."""
    location = stack.lakehouse
    table = location.child(f"gold/{GAME}_player_agg")
    if not DeltaTable.is_deltatable(table, dict(location.options)):
        return set()
    handle = DeltaTable(table, storage_options=dict(location.options))
    return set(handle.to_pyarrow_table(columns=["gamer_id"])["gamer_id"].to_pylist())


def test_a_player_gets_their_data_and_is_then_forgotten(stack: Stack, game: Game) -> None:
    anna, ben = Person(), Person()
    events = [anna.event(), anna.event(), ben.event()]
    assert game.post(events).status == 200
    ids = [str(event["event_id"]) for event in events]
    eventually(lambda: all(set(ids) <= stack.event_ids(table).keys() for table in TABLES), timeout=180)
    names = pseudonyms(stack, TABLE, set(ids))
    annas, bens = names[ids[0]], names[ids[2]]
    eventually(lambda: {annas, bens} <= gold_players(stack), timeout=180)

    handed_out = privacy(stack, "export_player", "--pseudonym", annas, "--events")
    assert f"{anna.mark}@example.com" in handed_out
    assert all(event_id in handed_out for event_id in ids[:2])
    assert ben.mark not in handed_out

    player, mail = f"gamer-{anna.mark}", f"{anna.mark}@example.com"
    eventually(lambda: ask_as_support("GET", player).status_code == 200, timeout=60)
    typed = f"SELECT count(*) FROM silver.events WHERE gamer_id IN ('{annas}', '{player}', '{mail}') -- {player}"  # noqa: S608
    assert SUPPORT.one(typed) == 2
    SUPPORT.refusal(f"SELECT nothing FROM silver.events WHERE mail = {mail}")  # noqa: S608 # it does not parse
    exports = f"SELECT 1 FROM audit.support_calls WHERE pseudonym = '{annas}' AND action = 'export' AND status = 200"  # noqa: S608
    queries = f"SELECT 1 FROM audit.queries WHERE query_text LIKE '%{annas}%' AND event = 'completed'"  # noqa: S608
    for question in (exports, queries):
        await_answer(ADMIN, f"{question} LIMIT 1")

    quick = ("--grace-seconds", "1", "--force", "--yes")
    forgot = json.loads(privacy(stack, "forget_player", "--pseudonym", annas, "--purge", *quick))
    rows = {each["table"]: each["rows"] for each in forgot["done"]["tables"]}

    assert {table: rows[table] for table in TABLES} == dict.fromkeys(TABLES, 2)
    for table in TABLES:
        assert pseudonyms(stack, table, set(ids)) == {ids[2]: bens}
    eventually(lambda: annas not in gold_players(stack), timeout=180)
    assert bens in gold_players(stack)
    assert f"{ben.mark}@example.com" in privacy(stack, "export_player", "--pseudonym", bens)
    assert nowhere(stack, anna, ben)
    eventually(lambda: stack.reconciliation().problems == [], timeout=60)


def nowhere(stack: Stack, *people: Person) -> bool:
    """Return True if no personal data of theirs stands in the tables, the databases' files or the logs."""
    marks = [person.mark for person in people]
    scanner = Scanner(SearchTerms(marks))
    scanner.store(Store(stack.lakehouse))
    assert list(Store(stack.lakehouse).objects("audit/"))
    # The audit's service deletes what it has copied.
    eventually(lambda: not found_in_the_audits_topics(marks), timeout=60)
    for service, folder in DATABASES.items():
        for mark in marks:
            check = f"grep --recursive --files-with-matches --text --fixed-strings {mark} {folder} || true"
            assert stack.compose("exec", "--no-TTY", service, "sh", "-c", check) == "", service
    logs = stack.compose("logs", "--no-color", "ingest", "ingest-events", "serving", "postgres", "trino", "audit")
    return not scanner.scan.findings and not any(mark in logs for mark in marks)


def found_in_the_audits_topics(marks: list[str]) -> bool:
    """Return True if the audit's topics have personal data, or can't be read."""
    scanner = Scanner(SearchTerms(marks))
    scan_topics(scanner, kafka("audit"), ["audit.queries", "audit.support-calls"])
    assert scanner.scan.unscanned == []
    return bool(scanner.scan.findings)
