"""Sends the event and follows it until Trino returns it; texts of the trace, as lines or as one line of JSON."""

import json
from functools import partial

from gamelake.contract.games import GameSpec
from gamelake.model.naming import SILVER_EVENTS
from gamelake.objects.store import Store
from tools.smoke.commits import (
    Batches,
    BatchFinder,
    CommitFinder,
    TopicEnds,
    TopicRange,
    between,
    check_tables,
    dead_letter_query,
)
from tools.smoke.event import EVENT_NAME, GatewayClient, SmokeEvent, credentials_of, make_event
from tools.smoke.event_trace import CompletedStep, EventTrace, Step, StepFailedError
from tools.smoke.settings import SmokeSettings
from tools.smoke.trino import TrinoClient, sql_name


def follow_one_event(settings: SmokeSettings, game: GameSpec, trace: EventTrace) -> SmokeEvent:
    """Send an event and return when Trino returns it.

    Raises:
        SettingsError: the game has no key.
        StepFailedError: a step did not happen; the completed ones are in the trace.
    """
    store, credentials = Store(settings.lakehouse), credentials_of(settings, game)
    finder = trace.await_step(Step.SIGNED, lambda: BatchFinder(store, settings.stream))
    ends = TopicEnds(settings)
    before = trace.await_step(Step.SIGNED, ends.now)
    event = make_event(game)
    trace.reached(Step.SIGNED, f"as {game.game_name}, with the key {credentials.key}")
    gateway = GatewayClient(settings.gateway, credentials, trace.patience)
    seconds = trace.await_step(Step.ACKNOWLEDGED, lambda: gateway.send(event))
    ranges = trace.await_step(Step.ACKNOWLEDGED, lambda: between(before, ends.now()))
    trace.reached(Step.ACKNOWLEDGED, f"in {seconds * 1000:.0f} ms; Kafka has it: {'; '.join(map(str, ranges))}")
    batches = trace.await_step(Step.DECIDED, lambda: finder.find(ranges))
    numbers = ", ".join(str(manifest.batch_id) for manifest in batches)
    trace.reached(
        Step.DECIDED, f"in batch {numbers} of {settings.stream} (records: {sum(m.records for m in batches):,})"
    )
    _await_commits(store, batches, game, ranges, trace)
    _await_trino(TrinoClient(settings.trino), event, ranges, trace)
    return event


def _await_commits(
    store: Store, batches: Batches, game: GameSpec, ranges: tuple[TopicRange, ...], trace: EventTrace
) -> None:
    check_tables(batches, game.table, ranges)
    for manifest in batches:
        commits = CommitFinder(store, manifest)
        tables = [table for table in (game.table, SILVER_EVENTS) if manifest.rows_in(table)]
        versions = {table: trace.await_step(Step.COMMITTED, partial(commits.version, table)) for table in tables}
    trace.reached(
        Step.COMMITTED, "as " + ", ".join(f"version {version} of {table}" for table, version in versions.items())
    )


def _await_trino(trino: TrinoClient, event: SmokeEvent, ranges: tuple[TopicRange, ...], trace: EventTrace) -> None:
    table = event.game.table
    trace.await_step(Step.REGISTERED, lambda: trino.find_table(table))
    trace.reached(Step.REGISTERED, f"in Trino as {sql_name(table)}")
    pseudonym = trace.await_step(
        Step.VISIBLE, lambda: trino.find_event(table, event, ranges), hint=dead_letter_query(ranges)
    )
    trace.reached(Step.VISIBLE, f"Trino returns it, with the masked pseudonym {pseudonym} and no personal data")


def as_line(taken: CompletedStep) -> str:
    """Render a completed step as a line of text."""
    return f"{taken.seconds:7.2f} s  {taken.step:<12}  {taken.place}"


def as_summary(event: SmokeEvent, trace: EventTrace) -> str:
    """Render the result in one sentence, with the command that shows the event."""
    seconds = trace.seconds_between(Step.ACKNOWLEDGED, Step.VISIBLE)
    statement = f"SELECT * FROM {sql_name(event.game.table)} WHERE event_name = '{EVENT_NAME}'"  # noqa: S608 - only shown
    return f'Trino returned the event {seconds:.1f} s after the gateway acknowledged it. Next: make sql Q="{statement}"'


def as_json(event: SmokeEvent | None, trace: EventTrace, failure: StepFailedError | None) -> str:
    """Render the trace as one line of JSON."""
    document: dict[str, object] = {
        "steps": [{"step": taken.step, "seconds": taken.seconds, "place": taken.place} for taken in trace.steps]
    }
    if event is not None:
        document |= {
            "event_id": event.event_id,
            "table": event.game.table,
            "acknowledged_to_trino_seconds": trace.seconds_between(Step.ACKNOWLEDGED, Step.VISIBLE),
        }
    if failure is not None:
        document["failed"] = {"step": failure.step, "problem": failure.problem, "next": failure.next_command}
    return json.dumps(document)
