"""Segments over a real Kafka: a player enters and leaves one on the topic, also if gold's job is killed in between."""

import shutil
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gamelake.model.failpoints import Failpoint
from gamelake.privacy.erasure_records import ErasureRecords, ErasureRequest, Reach
from tests.embedded.lakehouse import ROOT, Lakehouse
from tests.embedded.live_ops import Play, newest_values, read, send_plays
from tests.embedded.sending import Sender

_SEGMENTS = """\
segments:
  - { name: payers, description: who bought something, where: purchases > 0 }
  - { name: beginners, description: who played little, where: events < 3 }
"""


def segments_of(lakehouse: Lakehouse, topic: str) -> dict[str, list[str] | None]:
    """The newest segments of each player; None for a tombstone."""
    found: dict[str, list[str] | None] = {}
    for key, value in newest_values(lakehouse.bootstrap_servers, topic).items():
        message: Any = None if value is None else read(value, "player_segments.proto")
        found[key] = None if message is None else list(message.segments)
    return found


@pytest.mark.slow
def test_a_player_enters_and_leaves_a_segment_on_the_topic_also_after_a_kill(
    lakehouse: Lakehouse, sender: Sender, topic: Callable[[int], str]
) -> None:
    published = topic(2)
    lakehouse.settings["GAMELAKE_SEGMENTS_TOPIC"] = published
    for name in ("games.yaml", "metrics.yaml"):
        shutil.copy(ROOT / "contracts" / name, lakehouse.directory / name)
    (lakehouse.directory / "segments.yaml").write_text(_SEGMENTS)
    now = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=5)

    send_plays(sender, "Kart Rumble", [Play(gamer="g1"), Play(gamer="g2", name="purchase", amount=4.99)], now)
    lakehouse.ingest()
    killed = lakehouse.start("--once", job="gold", kill=f"{Failpoint.AFTER_FILES}:1")
    assert killed.wait() == -signal.SIGKILL, killed.log_text()[-3000:]
    assert segments_of(lakehouse, published) == {
        "kart_rumble/g1": ["beginners"],
        "kart_rumble/g2": ["beginners", "payers"],
    }

    # The killed job has published members of a segment that it did not commit: g1 must leave it on the topic too.
    send_plays(sender, "Kart Rumble", [Play(gamer="g1", ago=each) for each in range(3)], now + timedelta(minutes=1))
    lakehouse.ingest()
    lakehouse.ingest("gold")
    assert segments_of(lakehouse, published) == {"kart_rumble/g1": [], "kart_rumble/g2": ["beginners", "payers"]}
    rows = {row["segment"]: row["players"] for row in lakehouse.rows("gold/segments").to_pylist()}
    assert rows == {"beginners": 1, "payers": 1}

    ErasureRecords(lakehouse.store).begin(ErasureRequest.new("test", "kart_rumble", ("g2",), Reach.VAULT))
    lakehouse.ingest("gold")
    assert segments_of(lakehouse, published) == {"kart_rumble/g1": [], "kart_rumble/g2": None}
