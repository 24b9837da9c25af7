"""How one event is followed: through manifests and table logs, with patience that ends, told step by step."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest

from gamelake.model.errors import SettingsError
from gamelake.model.games import load_games
from gamelake.storage.appends import BatchTransaction, append_entry, entry_path
from gamelake.storage.data_files import DataFile
from gamelake.storage.manifests import BatchManifest, Manifests, OffsetRange, TableFiles
from gamelake.storage.store import Location, Store
from tools.smoke.cli import Form, parse
from tools.smoke.commits import BatchFinder, CommitFinder, Span, between, check_tables
from tools.smoke.event import PERSONAL, PLAYER, SmokeEvent, betrayals
from tools.smoke.journey import NEXT_COMMANDS, Journey, NotYetError, Step, StepFailedError, StepTaken
from tools.smoke.report import as_json, as_line
from tools.smoke.settings import SmokeSettings, TrinoAddress
from tools.smoke.trino import event_statement

STREAM = "ingest_events"
TABLE = "silver/archery_duel_events"
RECORD = (Span(partition=2, first=105, last=105),)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty lakehouse."""
    return Store(Location(uri=tmp_path.as_uri()))


def a_batch(batch_id: int, partition: int, first: int, last: int, generation: int = 1) -> BatchManifest:
    """A batch that took some offsets of a partition and has one row for the table."""
    file = DataFile(path=f"{batch_id}.parquet", size=1, rows=1, partition={}, statistics="{}")
    return BatchManifest(
        stream=STREAM,
        query_id="q",
        generation=generation,
        batch_id=batch_id,
        topic="events",
        topic_id="t",
        written_at="2026-01-01T00:00:00+00:00",
        offsets=(OffsetRange(partition=partition, first=first, last=last, records=last - first + 1),),
        tables=(TableFiles(table=TABLE, partition_by=(), schema="{}", files=(file,)),),
        dead_letters={},
    )


def decide(store: Store, manifest: BatchManifest) -> None:
    Manifests(store, STREAM).settle(manifest)


def commit(store: Store, version: int, manifest: BatchManifest) -> None:
    transaction = BatchTransaction(manifest.app_id, manifest.batch_id)
    assert store.put_new(entry_path(TABLE, version), append_entry(manifest.tables[0], transaction))


def test_the_batch_is_the_one_whose_offsets_hold_the_record(store: Store) -> None:
    finder = BatchFinder(store, STREAM)
    for batch in (a_batch(0, 2, 0, 99), a_batch(1, 3, 100, 110), a_batch(2, 2, 100, 110)):
        decide(store, batch)

    assert [found.batch_id for found in finder.find(RECORD)] == [2]


def test_records_that_came_in_beside_the_event_are_followed_with_it(store: Store) -> None:
    finder = BatchFinder(store, STREAM)
    decide(store, a_batch(0, 2, 100, 107))

    with pytest.raises(NotYetError):
        finder.find((Span(2, 105, 109), Span(3, 7, 7)))

    for batch in (a_batch(1, 4, 0, 9), a_batch(2, 2, 108, 120), a_batch(3, 3, 0, 9)):
        decide(store, batch)
    assert [found.batch_id for found in finder.find((Span(2, 105, 109), Span(3, 7, 7)))] == [0, 2, 3]


def test_what_came_in_is_what_the_topics_ends_have_moved_by() -> None:
    assert between({0: 5, 1: 7, 2: 0}, {0: 5, 1: 8, 2: 0}) == (Span(1, 7, 7),)
    assert between({0: 5}, {0: 9, 1: 2}) == (Span(0, 5, 8), Span(1, 0, 1))
    with pytest.raises(NotYetError):
        between({0: 5}, {0: 5})


def test_a_row_that_says_who_the_player_is_is_noticed() -> None:
    assert betrayals(["7e1a", "smoke_test", "None"]) == []
    assert betrayals(["7e1a", f"{{'email': '{PERSONAL['email']}'}}", PLAYER]) == [PLAYER, PERSONAL["email"]]


def test_a_batch_that_was_decided_before_the_event_was_sent_is_not_looked_at(store: Store) -> None:
    """A topic that was made anew counts its offsets from 0 again."""
    decide(store, a_batch(0, 2, 100, 110))
    finder = BatchFinder(store, STREAM)

    with pytest.raises(NotYetError, match=r"no batch has taken the record \(0 new batches looked at\)"):
        finder.find(RECORD)

    decide(store, a_batch(1, 2, 100, 110))
    assert [found.batch_id for found in finder.find(RECORD)] == [1]


def test_the_version_is_the_one_with_the_batchs_transaction(store: Store) -> None:
    batch = a_batch(2, 2, 100, 110)
    for version, earlier in enumerate((a_batch(0, 2, 0, 9), a_batch(1, 2, 10, 99), batch, a_batch(3, 2, 111, 120))):
        commit(store, version, earlier)

    assert CommitFinder(store, batch).version(TABLE) == 2


def test_a_commit_that_comes_later_is_found_when_it_comes(store: Store) -> None:
    batch = a_batch(2, 2, 100, 110)
    finder = CommitFinder(store, batch)
    commit(store, 0, a_batch(1, 2, 0, 99))

    with pytest.raises(NotYetError, match="has not taken batch 2"):
        finder.version(TABLE)

    store.put(entry_path(TABLE, 1), b'{"commitInfo":{"operation":"OPTIMIZE"}}')
    commit(store, 2, batch)
    assert finder.version(TABLE) == 2


def test_a_batch_of_the_same_number_under_another_checkpoint_is_another_batch(store: Store) -> None:
    commit(store, 0, a_batch(2, 2, 100, 110, generation=1))
    finder = CommitFinder(store, a_batch(2, 2, 100, 110, generation=2))

    with pytest.raises(NotYetError):
        finder.version(TABLE)


def test_a_batch_without_rows_for_the_table_ends_with_the_question_for_the_dead_letter() -> None:
    with pytest.raises(StepFailedError) as failed:
        check_tables((a_batch(2, 2, 100, 110),), "silver/kart_rumble_events", RECORD)

    assert failed.value.step is Step.COMMITTED
    assert "dead_letters.events" in failed.value.next_command
    assert "partition = 2" in failed.value.next_command


class Heard:
    """Someone who is told of each step."""

    def __init__(self) -> None:
        self.steps: list[StepTaken] = []

    def tell(self, taken: StepTaken) -> None:
        """Remember it."""
        self.steps.append(taken)


@pytest.fixture
def heard() -> Heard:
    return Heard()


def test_steps_are_told_as_they_happen_with_growing_times(heard: Heard) -> None:
    journey = Journey(timedelta(seconds=30), heard.tell)

    journey.reached(Step.SIGNED, "as Archery Duel")
    journey.reached(Step.ACKNOWLEDGED, "by Kafka")

    assert [taken.step for taken in heard.steps] == [Step.SIGNED, Step.ACKNOWLEDGED]
    assert 0 <= heard.steps[0].seconds <= heard.steps[1].seconds
    assert journey.seconds_between(Step.SIGNED, Step.ACKNOWLEDGED) >= 0
    assert as_line(StepTaken(Step.VISIBLE, 3.456, "Trino returns it")) == "   3.46 s  visible       Trino returns it"


def test_a_step_is_looked_for_until_it_has_happened(heard: Heard) -> None:
    answers: Iterator[str | None] = iter([None, None, "there"])

    def look() -> str:
        answer = next(answers)
        if answer is None:
            raise NotYetError("not there")
        return answer

    assert Journey(timedelta(seconds=30), heard.tell).await_step(Step.DECIDED, look) == "there"


def test_the_end_of_the_patience_names_the_step_what_was_seen_and_the_next_command(heard: Heard) -> None:
    def look() -> None:
        raise NotYetError("no batch has taken the record")

    with pytest.raises(StepFailedError) as failed:
        Journey(timedelta(0), heard.tell).await_step(Step.DECIDED, look, hint="make sql")

    assert str(failed.value) == (
        "not decided: no batch has taken the record after 0 s. Next: make ps; make logs S=ingest-events; make sql"
    )


def test_a_look_that_never_comes_back_ends_with_the_patience_too(heard: Heard) -> None:
    never = Event()

    with pytest.raises(StepFailedError, match="nobody answered"):
        Journey(timedelta(0), heard.tell).await_step(Step.VISIBLE, never.wait)

    never.set()


def test_what_makes_waiting_pointless_is_raised_at_once(heard: Heard) -> None:
    def look() -> None:
        raise StepFailedError(Step.VISIBLE, "Trino refuses", "make logs S=trino")

    with pytest.raises(StepFailedError, match="Trino refuses"):
        Journey(timedelta(days=1), heard.tell).await_step(Step.VISIBLE, look)


def test_every_step_has_a_command_to_look_at_next() -> None:
    assert NEXT_COMMANDS.keys() == set(Step)
    makefile = Path("Makefile").read_text(encoding="utf-8")
    for command in ("logs:", "ps:", "sql:", "verify:"):
        assert f"\n{command}" in makefile


def an_event() -> SmokeEvent:
    game = load_games(Path("contracts/games.yaml")).games[0]
    return SmokeEvent(event_id="4f7c", game=game, body=b"")


def test_a_program_reads_the_journey_as_json(heard: Heard) -> None:
    journey = Journey(timedelta(seconds=30), heard.tell)
    for step in Step:
        journey.reached(step, "somewhere")

    told = json.loads(as_json(an_event(), journey, None))

    assert [step["step"] for step in told["steps"]] == list(Step)
    assert told["event_id"] == "4f7c"
    assert told["table"] == "silver/archery_duel_events"
    assert told["acknowledged_to_trino_seconds"] >= 0
    assert "failed" not in told


def test_a_program_reads_where_the_journey_ended(heard: Heard) -> None:
    journey = Journey(timedelta(seconds=30), heard.tell)
    journey.reached(Step.SIGNED, "as Archery Duel")

    told = json.loads(as_json(None, journey, StepFailedError(Step.ACKNOWLEDGED, "refused", "make logs S=kafka")))

    assert [step["step"] for step in told["steps"]] == ["signed"]
    assert told["failed"] == {"step": "acknowledged", "problem": "refused", "next": "make logs S=kafka"}


def test_the_question_for_the_event_can_be_answered_from_statistics() -> None:
    statement = event_statement(TABLE, an_event(), RECORD)

    assert "FROM silver.archery_duel_events" in statement
    assert "(kafka_partition = 2 AND kafka_offset BETWEEN 105 AND 105) AND event_id = '4f7c'" in statement


def test_the_command_line_has_a_patience_that_ends() -> None:
    assert parse([]).patience == timedelta(seconds=60)
    assert parse(["--patience", "5", "--json"]).form is Form.JSON
    with pytest.raises(SystemExit):
        parse(["--patience", "0"])


VARIABLES = {
    "GAMELAKE_BOOTSTRAP_SERVERS": "kafka:9092",
    "GAMELAKE_TOPIC": "events",
    "GAMELAKE_GATEWAY_URL": "http://ingest:8000",
    "INGEST_KEYS_FILE": "/run/secrets/ingest-keys",
    "GAMELAKE_LAKEHOUSE": "file:///tmp/lakehouse",
    "GAMELAKE_TRINO_URL": "http://trino:8080",
}


def test_the_settings_come_from_the_variables_that_the_jobs_have_too() -> None:
    settings = SmokeSettings.from_env(VARIABLES)

    assert settings.trino == TrinoAddress("trino", 8080, "http")
    assert settings.stream == "ingest_events"
    assert settings.kafka.credentials is None


@pytest.mark.parametrize("name", VARIABLES)
def test_a_missing_variable_is_named(name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        SmokeSettings.from_env({other: value for other, value in VARIABLES.items() if other != name})


def test_an_address_of_trino_that_is_none_is_refused() -> None:
    with pytest.raises(SettingsError, match="it must be like http://trino:8080"):
        SmokeSettings.from_env(VARIABLES | {"GAMELAKE_TRINO_URL": "trino:8080"})
