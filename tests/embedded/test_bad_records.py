"""Rows 20 and 21 of the fault matrix: poison among good records, and only poison."""

import random
from collections import Counter

import pytest

from tests.embedded.lakehouse import Lakehouse
from tests.embedded.sending import Sender, an_event, contract_text, framed

DATA_LOSS = 3
POISON = 10_000


def poison(sender: Sender, count: int) -> list[bytes | None]:
    """Values that no decoder can take: a shuffled mix of every way to be wrong."""
    chance = random.Random(11)
    schema_id = sender.register(contract_text(1))
    good = framed(schema_id, an_event(contract_text(1), "never", "Archery"))
    makers = (
        lambda: None,
        lambda: b"",
        lambda: good[: chance.randrange(1, 6)],
        lambda: b"\x01" + good[1:],
        lambda: b"\x00" + chance.randrange(10**8, 10**8 + 20).to_bytes(4, "big") + good[5:],
        lambda: good[:5] + b"\x02\x50" + good[6:],
        lambda: good[:5] + b"\xff" * 6,
        lambda: good[: chance.randrange(8, 40)],
        # Field 1 with a length beyond the end.
        lambda: good[:6] + b"\x0a\x7f" + chance.randbytes(chance.randrange(1, 40)),
    )
    return [chance.choice(makers)() for _ in range(count)]


@pytest.mark.slow
def test_ten_thousand_bad_records_lose_no_good_one(lakehouse: Lakehouse, sender: Sender) -> None:
    lakehouse.settings["GAMELAKE_FLOOD_SHARE"] = "1"
    values = poison(sender, POISON)
    for start in range(0, POISON, 2_000):
        sender.send_bad(values[start : start + 2_000])
        sender.send_events(100, "Archery")

    lakehouse.ingest()

    assert lakehouse.event_ids() == Counter(sender.ledger.event_ids)
    assert sum(lakehouse.reasons().values()) == POISON
    assert {"bad_framing", "unknown_schema", "undecodable"} <= lakehouse.reasons().keys()
    letters = lakehouse.rows("dead_letters/events", "value", "offset", "detail")
    assert Counter(letters["value"].to_pylist()) == Counter(values)
    assert letters["offset"].null_count == letters["detail"].null_count == 0
    assert lakehouse.reconciliation().problems == []


@pytest.mark.slow
def test_a_flood_of_bad_records_stops_the_query_and_commits_nothing(lakehouse: Lakehouse, sender: Sender) -> None:
    lakehouse.settings["GAMELAKE_FLOOD_RECORDS"] = "1000"
    sender.send_events(100, "Archery")
    lakehouse.ingest()
    sender.send_bad(poison(sender, 1_500))

    job = lakehouse.start("--available-now")

    assert job.wait() == DATA_LOSS
    assert "GAMELAKE_FLOOD_SHARE" in job.log_text()
    assert lakehouse.reasons() == Counter()

    lakehouse.settings["GAMELAKE_FLOOD_SHARE"] = "1"
    lakehouse.ingest()
    assert sum(lakehouse.reasons().values()) == sender.ledger.bad
    assert lakehouse.event_ids() == Counter(sender.ledger.event_ids)
    assert lakehouse.reconciliation().problems == []
