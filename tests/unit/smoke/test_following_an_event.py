"""One event is followed through manifests and table logs, with a time limit, and each step is reported."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest

from gamelake.contract.games import load_games
from gamelake.delta.appends import BatchTransaction, append_actions
from gamelake.delta.commits import put_entry
from gamelake.delta.data_files import DataFile
from gamelake.delta.log.codec import entry_path
from gamelake.delta.table_files import TableFiles
from gamelake.ledger.manifests import BatchManifest, Manifests
from gamelake.model.errors import SettingsError
from gamelake.objects.store import Store
from gamelake.trino import TrinoAccess
from tests.support.failing import failing
from tests.support.manifests import a_manifest, offsets_of
from tools.smoke.commits import BatchFinder, CommitFinder, TopicRange, between, check_tables
from tools.smoke.event import PERSONAL, PLAYER, SmokeEvent, leaked_values
from tools.smoke.event_trace import NEXT_COMMANDS, CompletedStep, EventTrace, NotYetError, Step, StepFailedError
from tools.smoke.run import as_json, as_line
from tools.smoke.settings import SmokeSettings, TraceFormat, parse
from tools.smoke.trino import event_statement

STREAM = "ingest_events"
TABLE = "silver/archery_duel_events"
RECORD = (TopicRange(partition=2, first=105, last=105),)


def a_batch(batch_id: int, partition: int, first: int, last: int, generation: int = 1) -> BatchManifest:
    """A batch with some offsets of a partition and one row for the table."""
    file = DataFile(path=f"{batch_id}.parquet", size=1, rows=1, partition={}, statistics="{}")
    return a_manifest(
        stream=STREAM,
        generation=generation,
        batch_id=batch_id,
        offsets=(offsets_of(first, last, partition),),
        tables=(TableFiles(table=TABLE, partition_by=(), schema="{}", files=(file,)),),
    )


def decide(store: Store, manifest: BatchManifest) -> None:
    Manifests(store, STREAM).settle(manifest)


def commit(store: Store, version: int, manifest: BatchManifest) -> None:
    transaction = BatchTransaction(manifest.app_id, manifest.batch_id)
    assert put_entry(store, TABLE, version, append_actions(manifest.tables[0], transaction))


def test_the_batch_is_the_one_whose_offsets_contain_the_record(store: Store) -> None:
    finder = BatchFinder(store, STREAM)
    for batch in (a_batch(0, 2, 0, 99), a_batch(1, 3, 100, 110), a_batch(2, 2, 100, 110)):
        decide(store, batch)

    assert [found.batch_id for found in finder.find(RECORD)] == [2]


def test_records_written_at_the_same_time_are_followed_with_the_event(store: Store) -> None:
    finder = BatchFinder(store, STREAM)
    decide(store, a_batch(0, 2, 100, 107))

    with pytest.raises(NotYetError):
        finder.find((TopicRange(2, 105, 109), TopicRange(3, 7, 7)))

    for batch in (a_batch(1, 4, 0, 9), a_batch(2, 2, 108, 120), a_batch(3, 3, 0, 9)):
        decide(store, batch)
    assert [found.batch_id for found in finder.find((TopicRange(2, 105, 109), TopicRange(3, 7, 7)))] == [0, 2, 3]


def test_new_records_are_the_difference_of_the_topics_end_offsets() -> None:
    assert between({0: 5, 1: 7, 2: 0}, {0: 5, 1: 8, 2: 0}) == (TopicRange(1, 7, 7),)
    assert between({0: 5}, {0: 9, 1: 2}) == (TopicRange(0, 5, 8), TopicRange(1, 0, 1))
    with pytest.raises(NotYetError):
        between({0: 5}, {0: 5})


def test_personal_data_in_a_row_is_noticed() -> None:
    assert leaked_values(["7e1a", "smoke_test", "None"]) == []
    assert leaked_values(["7e1a", f"{{'email': '{PERSONAL['email']}'}}", PLAYER]) == [PLAYER, PERSONAL["email"]]


def test_a_batch_that_was_decided_before_the_event_was_sent_is_not_read(store: Store) -> None:
    """A topic that was made again counts its offsets from 0 again."""
    decide(store, a_batch(0, 2, 100, 110))
    finder = BatchFinder(store, STREAM)

    with pytest.raises(NotYetError, match=r"no batch has the record \(0 new batches read\)"):
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

    with pytest.raises(NotYetError, match="batch 2 is not committed"):
        finder.version(TABLE)

    store.put(entry_path(TABLE, 1), b'{"commitInfo":{"operation":"OPTIMIZE"}}')
    commit(store, 2, batch)
    assert finder.version(TABLE) == 2


def test_a_batch_of_the_same_number_under_another_checkpoint_is_another_batch(store: Store) -> None:
    commit(store, 0, a_batch(2, 2, 100, 110, generation=1))
    finder = CommitFinder(store, a_batch(2, 2, 100, 110, generation=2))

    with pytest.raises(NotYetError):
        finder.version(TABLE)


def test_a_batch_without_rows_for_the_table_suggests_the_query_for_the_dead_letter() -> None:
    with pytest.raises(StepFailedError) as failed:
        check_tables((a_batch(2, 2, 100, 110),), "silver/kart_rumble_events", RECORD)

    assert failed.value.step is Step.COMMITTED
    assert "dead_letters.events" in failed.value.next_command
    assert "partition = 2" in failed.value.next_command


class ReportedSteps:
    """Records each reported step."""

    def __init__(self) -> None:
        self.steps: list[CompletedStep] = []

    def report(self, taken: CompletedStep) -> None:
        self.steps.append(taken)


@pytest.fixture
def reported() -> ReportedSteps:
    return ReportedSteps()


def test_steps_are_reported_as_they_happen_with_growing_times(reported: ReportedSteps) -> None:
    trace = EventTrace(timedelta(seconds=30), reported.report)

    trace.reached(Step.SIGNED, "as Archery Duel")
    trace.reached(Step.ACKNOWLEDGED, "by Kafka")

    assert [taken.step for taken in reported.steps] == [Step.SIGNED, Step.ACKNOWLEDGED]
    assert 0 <= reported.steps[0].seconds <= reported.steps[1].seconds
    assert trace.seconds_between(Step.SIGNED, Step.ACKNOWLEDGED) >= 0
    assert (
        as_line(CompletedStep(Step.VISIBLE, 3.456, "Trino returns it")) == "   3.46 s  visible       Trino returns it"
    )


def test_a_step_is_polled_until_it_has_happened(reported: ReportedSteps) -> None:
    results: Iterator[str | None] = iter([None, None, "there"])

    def poll() -> str:
        result = next(results)
        if result is None:
            raise NotYetError("not there")
        return result

    assert EventTrace(timedelta(seconds=30), reported.report).await_step(Step.DECIDED, poll) == "there"


def test_a_timeout_names_the_step_the_state_and_the_next_command(reported: ReportedSteps) -> None:
    with pytest.raises(StepFailedError) as failed:
        EventTrace(timedelta(0), reported.report).await_step(
            Step.DECIDED, failing(NotYetError("no batch has the record")), hint="make sql"
        )

    assert str(failed.value) == (
        "not decided: no batch has the record after 0 s. Next: make ps; make logs S=ingest-events; make sql"
    )


def test_a_poll_that_never_returns_ends_at_the_time_limit(reported: ReportedSteps) -> None:
    never = Event()

    with pytest.raises(StepFailedError, match="no response"):
        EventTrace(timedelta(0), reported.report).await_step(Step.VISIBLE, never.wait)

    never.set()


def test_a_permanent_failure_is_raised_at_once(reported: ReportedSteps) -> None:
    with pytest.raises(StepFailedError, match="Trino refuses"):
        EventTrace(timedelta(days=1), reported.report).await_step(
            Step.VISIBLE, failing(StepFailedError(Step.VISIBLE, "Trino refuses", "make logs S=trino"))
        )


def test_every_step_has_a_next_command() -> None:
    assert NEXT_COMMANDS.keys() == set(Step)
    makefile = Path("Makefile").read_text(encoding="utf-8")
    for command in ("logs:", "ps:", "sql:", "verify:"):
        assert f"\n{command}" in makefile


def an_event() -> SmokeEvent:
    game = load_games(Path("contracts/games.yaml")).games[0]
    return SmokeEvent(event_id="4f7c", game=game, body=b"")


def test_the_trace_is_written_as_json(reported: ReportedSteps) -> None:
    trace = EventTrace(timedelta(seconds=30), reported.report)
    for step in Step:
        trace.reached(step, "somewhere")

    document = json.loads(as_json(an_event(), trace, None))

    assert [step["step"] for step in document["steps"]] == list(Step)
    assert document["event_id"] == "4f7c"
    assert document["table"] == "silver/archery_duel_events"
    assert document["acknowledged_to_trino_seconds"] >= 0
    assert "failed" not in document


def test_the_json_has_the_failed_step(reported: ReportedSteps) -> None:
    trace = EventTrace(timedelta(seconds=30), reported.report)
    trace.reached(Step.SIGNED, "as Archery Duel")

    document = json.loads(as_json(None, trace, StepFailedError(Step.ACKNOWLEDGED, "refused", "make logs S=kafka")))

    assert [step["step"] for step in document["steps"]] == ["signed"]
    assert document["failed"] == {"step": "acknowledged", "problem": "refused", "next": "make logs S=kafka"}


def test_the_query_for_the_event_can_use_file_statistics() -> None:
    statement = event_statement(TABLE, an_event(), RECORD)

    assert "FROM silver.archery_duel_events" in statement
    assert "(kafka_partition = 2 AND kafka_offset BETWEEN 105 AND 105) AND event_id = '4f7c'" in statement


def test_the_command_line_has_a_time_limit() -> None:
    assert parse([]).patience == timedelta(seconds=60)
    assert parse(["--patience", "5", "--json"]).form is TraceFormat.JSON
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

    assert settings.trino == TrinoAccess("trino", 8080, "http", "analyst")
    assert settings.stream == "ingest_events"
    assert settings.kafka.credentials is None


@pytest.mark.parametrize("name", VARIABLES)
def test_a_missing_variable_is_named(name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        SmokeSettings.from_env({other: value for other, value in VARIABLES.items() if other != name})


def test_a_malformed_address_of_trino_is_refused() -> None:
    with pytest.raises(SettingsError, match="it must be like https://trino:8080"):
        SmokeSettings.from_env(VARIABLES | {"GAMELAKE_TRINO_URL": "trino:8080"})
