"""Live operations over a real Kafka: states that survive kills, erased players, and a patch that breaks purchases."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gamelake.ledger.manifests import Manifests
from gamelake.ledger.reconciliation import reconcile
from gamelake.model.failpoints import Failpoint
from gamelake.privacy.erasure_records import ErasureRecords, ErasureRequest, Reach
from tests.embedded.lakehouse import Lakehouse
from tests.embedded.live_ops import (
    Play,
    expected_states,
    in_last_hour,
    newest_values,
    read,
    records,
    send_plays,
    tables_row,
)
from tests.embedded.sending import Sender

_STATES = "gold/live_ops_player_state"


@pytest.fixture
def topics(lakehouse: Lakehouse, topic: Callable[[int], str]) -> tuple[str, str]:
    """The two topics that the job publishes to."""
    players, signals = topic(2), topic(1)
    lakehouse.settings |= {
        "GAMELAKE_LIVE_OPS_PLAYER_TOPIC": players,
        "GAMELAKE_LIVE_OPS_SIGNAL_TOPIC": signals,
        "GAMELAKE_LIVE_OPS_TABLE_SECONDS": "0",
    }
    return players, signals


def some_plays(count: int, oldest: float) -> list[Play]:
    draw = random.Random(7)
    plays = []
    for number in range(count):
        name = draw.choice(["session_start", "purchase", "level_completed", "level_completed"])
        plays.append(
            Play(
                gamer=f"g{draw.randrange(25)}",
                name=name,
                ago=round(draw.uniform(0, oldest), 3),
                amount=draw.choice([0.99, 4.99, 49.99]) if name == "purchase" else None,
                level=draw.choice([None, 1, 2, 3]),
                session=f"s{number}" if name == "session_start" else "",
            )
        )
    return sorted(plays, key=lambda play: -play.ago)


@pytest.mark.slow
def test_states_are_right_after_any_number_of_kills_and_an_erased_player_has_none(
    lakehouse: Lakehouse, sender: Sender, topics: tuple[str, str]
) -> None:
    now = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=5)
    plays = some_plays(400, oldest=3 * 3600)
    send_plays(sender, "Archery", plays[:200], now)
    lakehouse.ingest_killed(Failpoint.AFTER_MANIFEST, job="live_ops")
    send_plays(sender, "Archery", plays[200:], now)
    sender.send_again()
    # After the files of the batch, so that the workers have changed states that no manifest names.
    lakehouse.ingest_killed(Failpoint.AFTER_FILES, 2, job="live_ops")
    lakehouse.ingest("live_ops")

    rows = lakehouse.rows(_STATES).to_pylist()
    published = newest_values(lakehouse.bootstrap_servers, topics[0])
    expected = expected_states(plays, now)
    newest = min(play.ago for play in plays)
    assert {row["gamer_id"] for row in rows} == expected.keys() == {key.split("/")[1] for key in published}
    for gamer, state in expected.items():
        row, value = tables_row(rows, gamer), published[f"archery/{gamer}"]
        assert value is not None
        message: Any = read(value, "player_state.proto")
        for received in (row["sessions"], message.sessions):
            assert received == len(state.sessions)
        for received in (row["bookings_micros"], message.bookings_micros):
            assert received == state.bookings_micros
        spent = in_last_hour(plays, gamer, newest)
        assert row["spend_last_hour_micros"] == message.spend_last_hour_micros == spent
        assert row["last_seen"] == message.last_seen.ToDatetime(UTC) == state.last
        assert row["purchases"] == message.purchases == state.purchases
    # The second stream of the same records is not part of the reconciliation.
    assert reconcile(lakehouse.store).problems == []

    request = ErasureRequest.new("test", "archery", ("g3",), Reach.VAULT)
    ErasureRecords(lakehouse.store).begin(request)
    send_plays(sender, "Archery", [Play(gamer="g3"), Play(gamer="g4")], datetime.now(UTC))
    lakehouse.ingest("live_ops")

    after = newest_values(lakehouse.bootstrap_servers, topics[0])
    assert after["archery/g3"] is None
    assert after["archery/g4"] is not None
    assert {row["gamer_id"] for row in lakehouse.rows(_STATES).to_pylist()} == expected.keys() - {"g3"}


@pytest.mark.slow
def test_a_backlog_is_taken_in_batches_of_so_many_records(
    lakehouse: Lakehouse, sender: Sender, topics: tuple[str, str]
) -> None:
    now = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=5)
    plays = some_plays(120, oldest=600)
    send_plays(sender, "Archery", plays, now)
    lakehouse.settings["GAMELAKE_MAX_OFFSETS_PER_TRIGGER"] = "30"

    lakehouse.ingest("live_ops")

    batches = Manifests(lakehouse.store, "live_ops").last(10)
    assert sum(each.records for each in batches) == 120
    # Spark takes one more of a partition where the partitions of a topic share what is odd.
    assert max(each.records for each in batches) <= 30 + len(batches[0].offsets)
    published = newest_values(lakehouse.bootstrap_servers, topics[0])
    assert {key.split("/")[1] for key in published} == expected_states(plays, now).keys()


def test_a_patch_that_breaks_purchases_is_reported_once_in_the_topic_and_the_table(
    lakehouse: Lakehouse, sender: Sender, topics: tuple[str, str]
) -> None:
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    broken = 10
    for game in ("Archery", "Bingo"):
        plays = [
            Play(gamer=f"g{number}", ago=60.0 * minute + number, name="purchase" if sells else "level_completed",
                 amount=1.99 if sells else None)
            for minute in range(100, 0, -1)
            for number in range(30)
            for sells in [number < 15 and not (game == "Archery" and minute <= broken)]
        ]  # fmt: skip
        send_plays(sender, game, plays, now)
    # The clock of the stream continues: the last minutes are over.
    send_plays(sender, "Bingo", [Play(gamer="g1", ago=-0.5) for _ in range(100)], now)

    lakehouse.ingest("live_ops")
    lakehouse.ingest("live_ops")

    (received,) = records(lakehouse.bootstrap_servers, topics[1])
    assert received[0] == "archery"
    assert received[1] is not None
    signal: Any = read(received[1], "signal.proto")
    assert signal.DESCRIPTOR.fields_by_name["kind"].enum_type.values_by_number[signal.kind].name == (
        "SIGNAL_KIND_BOOKINGS_FALL"
    )
    assert signal.noticed_at.ToDatetime(UTC) - (now - timedelta(minutes=broken)) < timedelta(minutes=5)
    (row,) = lakehouse.rows("gold/live_ops_signals").to_pylist()
    assert (row["signal_id"], row["phase"], row["kind"]) == (signal.signal_id, "begun", "bookings_fall")
    minutes = lakehouse.rows("gold/live_ops_minutes").to_pylist()
    assert sum(minute["events"] for minute in minutes if minute["game"] == "archery") >= 95 * 30
