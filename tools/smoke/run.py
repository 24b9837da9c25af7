"""The journey itself: send, then follow the event to where an analyst finds it."""

from functools import partial

from gamelake.model.games import GameSpec
from gamelake.model.naming import SILVER_EVENTS
from gamelake.storage.store import Store
from tools.smoke.commits import (
    Batches,
    BatchFinder,
    CommitFinder,
    Span,
    TopicEnds,
    between,
    check_tables,
    dead_letter_question,
)
from tools.smoke.event import Gateway, SmokeEvent, credentials_of, make_event
from tools.smoke.journey import Journey, Step
from tools.smoke.settings import SmokeSettings
from tools.smoke.trino import Analyst, sql_name


def follow_one_event(settings: SmokeSettings, game: GameSpec, journey: Journey) -> SmokeEvent:
    """Send an event and return when Trino returns it.

    Raises:
        SettingsError: the game has no key.
        StepFailedError: a step did not happen; the ones before it are in the journey.
    """
    store, credentials = Store(settings.lakehouse), credentials_of(settings, game)
    finder = journey.await_step(Step.SIGNED, lambda: BatchFinder(store, settings.stream))
    ends = TopicEnds(settings)
    before = journey.await_step(Step.SIGNED, ends.now)
    event = make_event(game)
    journey.reached(Step.SIGNED, f"as {game.game_name}, with the key {credentials.key}")
    gateway = Gateway(settings.gateway, credentials, journey.patience)
    seconds = journey.await_step(Step.ACKNOWLEDGED, lambda: gateway.send(event))
    spans = journey.await_step(Step.ACKNOWLEDGED, lambda: between(before, ends.now()))
    journey.reached(Step.ACKNOWLEDGED, f"in {seconds * 1000:.0f} ms; Kafka has it: {'; '.join(map(str, spans))}")
    batches = journey.await_step(Step.DECIDED, lambda: finder.find(spans))
    numbers = ", ".join(str(manifest.batch_id) for manifest in batches)
    journey.reached(
        Step.DECIDED, f"in batch {numbers} of {settings.stream} (records: {sum(m.records for m in batches):,})"
    )
    _await_commits(store, batches, game, spans, journey)
    _await_trino(Analyst(settings.trino), event, spans, journey)
    return event


def _await_commits(store: Store, batches: Batches, game: GameSpec, spans: tuple[Span, ...], journey: Journey) -> None:
    check_tables(batches, game.table, spans)
    for manifest in batches:
        commits = CommitFinder(store, manifest)
        tables = [table for table in (game.table, SILVER_EVENTS) if manifest.rows_in(table)]
        versions = {table: journey.await_step(Step.COMMITTED, partial(commits.version, table)) for table in tables}
    journey.reached(
        Step.COMMITTED, "as " + ", ".join(f"version {version} of {table}" for table, version in versions.items())
    )


def _await_trino(analyst: Analyst, event: SmokeEvent, spans: tuple[Span, ...], journey: Journey) -> None:
    table = event.game.table
    journey.await_step(Step.REGISTERED, lambda: analyst.find_table(table))
    journey.reached(Step.REGISTERED, f"in Trino as {sql_name(table)}")
    pseudonym = journey.await_step(
        Step.VISIBLE, lambda: analyst.find_event(table, event, spans), hint=dead_letter_question(spans)
    )
    journey.reached(Step.VISIBLE, f"Trino returns it, of the player {pseudonym}, without what is personal")
