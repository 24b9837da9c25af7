"""Topics that are split by game: two drivers write one lakehouse at the same time, and lose and double nothing."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from gamelake.ledger.generations import Generations
from gamelake.ledger.manifests import Manifests
from gamelake.ledger.reconciliation import streams_of
from gamelake.model.errors import SettingsError
from gamelake.model.failpoints import Failpoint
from gamelake.model.naming import BRONZE_EVENTS, SILVER_EVENTS
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.refresh import Refreshed
from gamelake.serving.gold.runner import GoldTables, attempt
from tests.embedded.lakehouse import ROOT, Job, Lakehouse
from tests.embedded.sending import Sender, an_event, contract_text, framed
from tests.support.eventually import eventually

STREAM, OTHER_STREAM = "ingest_events", "ingest_events_b"


@pytest.fixture
def other(lakehouse: Lakehouse, topic: Callable[[int], str]) -> Lakehouse:
    """The same lakehouse, as the driver of another stream with a topic of its own has it."""
    return replace(lakehouse, topic=topic(3), settings={"GAMELAKE_STREAM": OTHER_STREAM})


@pytest.fixture
def other_sender(other: Lakehouse) -> Sender:
    return Sender(other.bootstrap_servers, other.registry_url, other.topic)


def batches(lakehouse: Lakehouse, stream: str) -> int:
    return len(Manifests(lakehouse.store, stream).batches())


def end(*jobs: Job) -> None:
    for job in jobs:
        job.process.kill()
        job.process.wait()


@pytest.mark.slow
def test_two_streams_of_one_lakehouse_lose_and_double_nothing_while_one_is_killed_and_restarted(
    lakehouse: Lakehouse, other: Lakehouse, sender: Sender, other_sender: Sender
) -> None:
    def send(*senders: Sender) -> None:
        for each in senders:
            each.send_again()
            each.send_events(40, "Archery" if each is sender else "Bingo")
            each.send_bad([b"\x07 wrong magic"])

    send(sender, other_sender)
    # Both make the shared tables; one is killed between two tables of its second batch.
    running, killed = lakehouse.start(), other.start(kill=f"{Failpoint.AFTER_TABLE_COMMIT}:6")
    try:

        def is_dead() -> bool:
            send(sender, other_sender)
            return killed.process.poll() is not None

        eventually(is_dead, timeout=120)
        # The other stream continues meanwhile, and while the killed one finishes its batch.
        done = batches(lakehouse, STREAM)
        send(sender)
        eventually(lambda: batches(lakehouse, STREAM) > done, timeout=60)
        send(sender, other_sender)
        other.ingest()
        lakehouse.await_rows(SILVER_EVENTS, sender.ledger.event_ids)
        assert running.terminate() == 0, running.log_text()[-3000:]
    finally:
        end(running, killed)
    for table in GoldTables(lakehouse.store, load_gold(ROOT / "contracts/games.yaml")).now():
        assert isinstance(attempt(table), Refreshed)

    sent = [*sender.ledger.event_ids, *other_sender.ledger.event_ids]
    assert lakehouse.event_ids(SILVER_EVENTS) == Counter(sent)
    assert lakehouse.event_ids("silver/archery_events") == Counter(sender.ledger.event_ids)
    assert lakehouse.event_ids("silver/bingo_events") == Counter(other_sender.ledger.event_ids)
    found = lakehouse.reconciliation()
    assert found.problems == []
    assert found.duplicates == {"archery": sender.ledger.sent_again, "bingo": other_sender.ledger.sent_again}
    assert sum(lakehouse.reasons().values()) == sender.ledger.bad + other_sender.ledger.bad
    assert set(lakehouse.rows(BRONZE_EVENTS, "topic")["topic"].to_pylist()) == {lakehouse.topic, other.topic}
    assert streams_of(lakehouse.store) == [STREAM, OTHER_STREAM]
    assert {each.topic for each in Generations(lakehouse.store, OTHER_STREAM).all()} == {other.topic}
    counted: Counter[str] = Counter()
    for row in lakehouse.rows("gold/kpi_hourly", "game_name", "events").to_pylist():
        counted[row["game_name"]] += row["events"]
    assert counted == {"Archery": len(sender.ledger.event_ids), "Bingo": len(other_sender.ledger.event_ids)}


def test_an_event_that_comes_by_two_topics_is_a_row_by_each(
    lakehouse: Lakehouse, other: Lakehouse, sender: Sender, other_sender: Sender
) -> None:
    source = contract_text(1)
    values = [framed(sender.register(source), an_event(source, "in-both", "Archery"))]
    sender.send_values(["in-both"], values)
    other_sender.send_values(["in-both"], values)

    lakehouse.ingest()
    other.ingest()

    assert lakehouse.event_ids() == Counter({"in-both": 2})
    assert lakehouse.reconciliation().problems == []


def test_a_second_stream_of_a_topic_is_refused(lakehouse: Lakehouse, sender: Sender) -> None:
    ids = sender.send_events(20, "Archery")
    lakehouse.ingest()
    renamed = replace(lakehouse, settings={"GAMELAKE_STREAM": "renamed"})

    with pytest.raises(SettingsError, match="GAMELAKE_STREAM=ingest_events"):
        renamed.ingest()

    assert lakehouse.event_ids() == Counter(ids)
    assert streams_of(lakehouse.store) == [STREAM]
