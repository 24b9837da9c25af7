"""The journey itself: send, then follow the event to where an analyst finds it."""

from functools import partial

from gamelake.contracts.games import GameSpec
from gamelake.lake.manifest import BatchManifest
from gamelake.lake.store import Store
from gamelake.naming import SILVER_EVENTS
from services.smoke.committing import BatchFinder, CommitFinder, check_tables, dead_letter_question
from services.smoke.event import SmokeEvent, make_event
from services.smoke.journey import Journey, Step
from services.smoke.producing import Coordinates, send
from services.smoke.querying import Analyst, sql_name
from services.smoke.settings import SmokeSettings


def follow_one_event(settings: SmokeSettings, game: GameSpec, journey: Journey) -> SmokeEvent:
    """Send an event and return when Trino returns it.

    Raises:
        StepFailedError: a step did not happen; the ones before it are in the journey.
    """
    store = Store(settings.lakehouse)
    batches = journey.await_step(Step.ENCODED, lambda: BatchFinder(store, settings.stream))
    event = journey.await_step(Step.ENCODED, lambda: make_event(settings, game))
    journey.reached(Step.ENCODED, f"as {game.game_name}, with schema {event.schema_id}")
    record = send(event, settings, journey.remaining())
    journey.reached(
        Step.ACKNOWLEDGED, f"by Kafka: topic {record.topic}, partition {record.partition}, offset {record.offset}"
    )
    manifest = journey.await_step(Step.DECIDED, lambda: batches.find(record))
    journey.reached(Step.DECIDED, f"in batch {manifest.batch_id} of {settings.stream} (records: {manifest.records:,})")
    _await_commits(store, manifest, game, record, journey)
    _await_trino(Analyst(settings.trino), event, record, journey)
    return event


def _await_commits(
    store: Store, manifest: BatchManifest, game: GameSpec, record: Coordinates, journey: Journey
) -> None:
    check_tables(manifest, game.table, record)
    commits = CommitFinder(store, manifest)
    versions = {
        table: journey.await_step(Step.COMMITTED, partial(commits.version, table))
        for table in (game.table, SILVER_EVENTS)
    }
    journey.reached(
        Step.COMMITTED, "as " + ", ".join(f"version {version} of {table}" for table, version in versions.items())
    )


def _await_trino(analyst: Analyst, event: SmokeEvent, record: Coordinates, journey: Journey) -> None:
    table = event.game.table
    journey.await_step(Step.REGISTERED, lambda: analyst.find_table(table))
    journey.reached(Step.REGISTERED, f"in Trino as {sql_name(table)}")
    journey.await_step(
        Step.VISIBLE, lambda: analyst.find_event(table, event, record), hint=dead_letter_question(record)
    )
    journey.reached(Step.VISIBLE, "Trino returns it")
