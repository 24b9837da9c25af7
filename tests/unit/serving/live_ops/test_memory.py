"""What a worker knows of its players: from the table and from files, and never what no manifest names."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from gamelake.delta.log.checkpoints import CHECKPOINT_EVERY, is_log_checkpoint_due
from gamelake.layers.identity import Identities
from gamelake.model.arrays import Words
from gamelake.model.errors import StoreError
from gamelake.model.naming import state_folder
from gamelake.model.worker_cache import forget_all
from gamelake.objects.store import Location, Store
from gamelake.serving.live_ops.plan import Base, StatePlan
from gamelake.serving.live_ops.states.hour import PURCHASES_SCHEMA
from gamelake.serving.live_ops.states.memory import Share
from gamelake.serving.live_ops.states.player_table import (
    PLAYER_STATE,
    PlayerStateTable,
    as_rows,
    as_states,
    write_bucket,
)
from gamelake.serving.live_ops.states.players import STATE_SCHEMA, blank, share_of
from gamelake.serving.live_ops.states.state_files import file_prefix, write_change
from gamelake.serving.live_ops.states.updating import keys_of_players

FOLDER, SEED = state_folder("live_ops"), "seed"
PLAYERS = [("kart_rumble", f"g{number}") for number in range(200)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty lakehouse, and a worker that knows nothing."""
    forget_all()
    return Store(Location(uri=tmp_path.as_uri()))


def a_plan(**changes: object) -> StatePlan:
    plan = StatePlan(folder=FOLDER, seed=SEED, batch_id=0, shares=2, moment=0, clock=0)
    return replace(plan, **changes)  # type: ignore[arg-type] # checked by the plan itself


def states(sessions: int, players: list[tuple[str, str]] = PLAYERS) -> pa.Table:
    games, gamer_ids, keys = keys_of_players(players, SEED)
    rows = blank(keys).drop_columns(["game", "gamer_id", "sessions", "first_seen"])
    for name, column in (
        ("game", games),
        ("gamer_id", gamer_ids),
        ("sessions", pa.array([sessions] * len(players))),
        ("first_seen", pa.array([1_000_000] * len(players))),
    ):
        rows = rows.append_column(name, column)
    return rows.select(STATE_SCHEMA.names)


def keys() -> Words:
    return np.sort(keys_of_players(PLAYERS, SEED)[2])


def change(store: Store, batch_id: int, share: int, rows: pa.Table, shares: int = 2) -> str:
    mine = rows.filter(pa.array(share_of(rows["key"].to_numpy(), shares) == share))
    label = f"{share}of{shares}"
    return write_change(store, file_prefix(FOLDER, batch_id, "change", label), mine, PURCHASES_SCHEMA.empty_table())


def sessions_of(store: Store, plan: StatePlan) -> list[int]:
    """Return the sessions of each player, by whichever share has it."""
    found: dict[int, int] = {}
    for number in range(plan.shares):
        rows = Share(plan, number, store).memory().players.all()
        found.update(zip(rows["key"].to_pylist(), rows["sessions"].to_pylist(), strict=True))
    assert found.keys() == set(keys().tolist())
    return [found[key] for key in keys().tolist()]


def test_a_worker_takes_in_what_batches_have_changed_since_it_last_read(store: Store) -> None:
    first = [(0, change(store, 0, share, states(1))) for share in (0, 1)]
    assert sessions_of(store, a_plan(changes=first)) == [1] * 200

    second = [(1, change(store, 1, share, states(2, PLAYERS[:1]))) for share in (0, 1)]

    assert sum(sessions_of(store, a_plan(changes=[*first, *second]))) == 201


def test_what_a_failed_attempt_has_changed_is_forgotten(store: Store) -> None:
    first = [(0, change(store, 0, share, states(1))) for share in (0, 1)]
    for share in (0, 1):
        kept = Share(a_plan(changes=first), share, store).memory()
        kept.apply(change(store, 1, share, states(9)), states(9), PURCHASES_SCHEMA.empty_table())

    again = [(1, change(store, 1, share, states(2))) for share in (0, 1)]

    assert sessions_of(store, a_plan(changes=[*first, *again])) == [2] * 200


def test_another_number_of_shares_finds_the_same_players(store: Store) -> None:
    changes = [(0, change(store, 0, share, states(3))) for share in (0, 1)]

    assert sessions_of(store, a_plan(changes=changes, shares=3)) == [3] * 200


def test_a_worker_that_has_just_started_begins_with_the_table(store: Store) -> None:
    rows, table = states(5), PlayerStateTable(store, FOLDER)
    buckets = rows["key"].to_numpy() % np.uint64(32)
    files = [write_bucket(store, int(each), rows.filter(pa.array(buckets == each))) for each in np.unique(buckets)]
    base = Base(
        stream=FOLDER, batch_id=7, moment=1, shares=("x/000000000007-change-0of2-a", "x/000000000007-change-1of2-b")
    )
    assert table.replace(files, base)
    found, places = table.base()
    later = [(8, change(store, 8, share, states(6, PLAYERS[:1]))) for share in (0, 1)]

    plan = a_plan(base=found, files=places, changes=later)

    assert found == base
    assert sum(sessions_of(store, plan)) == 5 * 200 + 1
    # The table of another stream is not a base to begin with.
    assert PlayerStateTable(store, "other").base() == (Base(stream="other"), [])


def test_the_log_of_the_table_gets_a_checkpoint_when_it_is_the_tables_turn(store: Store, tmp_path: Path) -> None:
    table = PlayerStateTable(store, FOLDER)
    for batch in range(CHECKPOINT_EVERY):
        assert table.replace([], Base(stream=FOLDER, batch_id=batch))

    (checkpoint,) = (tmp_path / PLAYER_STATE / "_delta_log").glob("*.checkpoint.parquet")
    assert is_log_checkpoint_due(PLAYER_STATE, int(checkpoint.name[:20]))


def test_a_file_that_is_gone_is_named(store: Store) -> None:
    with pytest.raises(StoreError, match="000000000000-change-0of2-gone is gone"):
        Share(a_plan(changes=[(0, f"{FOLDER}/000000000000-change-0of2-gone")]), 0, store).memory()


def test_states_come_back_from_the_tables_rows_as_they_were(store: Store) -> None:
    rows = states(5)

    assert as_states(as_rows(rows), Identities(SEED)).equals(rows.combine_chunks())
