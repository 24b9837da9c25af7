"""Row 36 of the fault matrix: one game sends nine tenths of all events, and no other waits for it."""

import json
from bisect import bisect_right
from collections.abc import Iterator
from statistics import quantiles

from gamelake.delta.log.codec import entry_path
from gamelake.ledger.manifests import BatchManifest, Manifests
from gamelake.objects.store import Store
from tests.embedded.lakehouse import Lakehouse
from tests.embedded.sending import Sender

HOT, OTHERS = "Archery", ("Bingo", "Chess", "Darts")


def test_a_hot_game_delays_no_other_game(lakehouse: Lakehouse, sender: Sender) -> None:
    lakehouse.settings["GAMELAKE_MAX_OFFSETS_PER_TRIGGER"] = "4000"
    for _ in range(3):
        sender.send_events(3_600, HOT)
        for game in OTHERS:
            sender.send_events(130, game)

    lakehouse.ingest()

    manifests = Manifests(lakehouse.store, "ingest_events")
    batches = manifests.last(len(manifests.batches()))
    assert len(batches) >= 3
    hot = ages(lakehouse, HOT, batches)
    for game in OTHERS:
        # Seconds from the event to the commit that shows it, behind a backlog of the hot game's.
        assert quantiles(ages(lakehouse, game, batches), n=20)[-1] <= quantiles(hot, n=20)[-1] + 0.5
    assert lakehouse.reconciliation().problems == []


def ages(lakehouse: Lakehouse, game: str, batches: list[BatchManifest]) -> list[float]:
    """Return how old each event of a game was when its table had it."""
    table = f"silver/{game.lower()}_events"
    rows = lakehouse.rows(table, "event_time", "kafka_partition", "kafka_offset").to_pylist()
    committed = dict(commits(lakehouse.store, table))
    ends = {
        partition: [
            (taken.last, batch.batch_id) for batch in batches for taken in batch.offsets if taken.partition == partition
        ]
        for partition in {row["kafka_partition"] for row in rows}
    }
    found = []
    for row in rows:
        of_partition = ends[row["kafka_partition"]]
        batch = of_partition[bisect_right(of_partition, (row["kafka_offset"], -1))][1]
        found.append(committed[batch] - row["event_time"].timestamp())
    return found


def commits(store: Store, table: str) -> Iterator[tuple[int, float]]:
    """Which batch a table took when, in seconds since 1970."""
    version = 0
    while (entry := store.get(entry_path(table, version))) is not None:
        actions = [json.loads(line) for line in entry.splitlines()]
        moments = [action["commitInfo"]["timestamp"] / 1000 for action in actions if "commitInfo" in action]
        yield from ((action["txn"]["version"], moments[0]) for action in actions if "txn" in action)
        version += 1
