"""The second half of a batch: updates and publishes the states of a task's share of the players."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.layers.identity import Identities
from gamelake.model.arrays import Words
from gamelake.model.naming import game_table
from gamelake.objects.store import Store
from gamelake.serving.live_ops.plan import LiveOpsPlan
from gamelake.serving.live_ops.publishing import player_keys, worker_publisher
from gamelake.serving.live_ops.reading import Reading, ShareEvents
from gamelake.serving.live_ops.states.hour import events_of, purchases
from gamelake.serving.live_ops.states.memory import Share, ShareMemory
from gamelake.serving.live_ops.states.player_table import as_rows
from gamelake.serving.live_ops.states.players import (
    PLAYER_EVENTS_SCHEMA,
    PlayerChanges,
    advanced,
    blank,
    in_order,
    share_of,
)
from gamelake.serving.live_ops.states.state_files import decode_table, file_prefix, write_change
from gamelake.streaming.kafka.reader import TaskFailure

REPORT_TYPES = "report binary"


class UpdateReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a task to the driver.

    Attributes:
        path: the file of its changes; "" if nothing was written.
        moment: the stream's time after the batch, in microseconds since 1970.
        states: the number of changed states.
        readings: the reports of the first half's tasks that were sent to this share.
        failure: the reason why a task of the first half could not read all its records; nothing was updated then.
    """

    path: str
    moment: int
    states: int
    readings: tuple[Reading, ...]
    failure: TaskFailure | None = None


@dataclass(frozen=True, slots=True)
class UpdateTask:
    """The function that Spark maps over the shares of the players (`mapInArrow`).

    Attributes:
        plan: the plan of the batch.
    """

    plan: LiveOpsPlan

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Update and publish the states of a share, and write the changes to a file.

        Args:
            batches: all rows of one share, from `ReadTask`: columns `share` (int32) and `events` (binary).

        Yields:
            If there are rows, one row: `report` (binary), an encoded `UpdateReport`.
        """
        share_events: list[ShareEvents] = []
        numbers: set[int] = set()
        for batch in batches:
            numbers.update(batch.column("share").to_pylist())
            share_events += [
                msgspec.msgpack.decode(each, type=ShareEvents) for each in batch.column("events").to_pylist()
            ]
        if share_events:
            (number,) = numbers
            failure = next((each.failure for each in share_events if each.failure is not None), None)
            if failure is not None:
                report = UpdateReport(path="", moment=0, states=0, readings=(), failure=failure)
            else:
                report = _Update(self.plan, number).take(share_events)
            yield pa.RecordBatch.from_arrays([pa.array([msgspec.msgpack.encode(report)], pa.binary())], ["report"])


class _Update:
    def __init__(self, plan: LiveOpsPlan, number: int) -> None:
        self._plan = plan
        self._state = plan.state
        self._store = Store(plan.reading.lakehouse)
        self._share = Share(plan.state, number, self._store)

    def take(self, share_events: Sequence[ShareEvents]) -> UpdateReport:
        moment = max(self._state.moment, *(each_share.newest for each_share in share_events))
        memory = self._share.memory()
        changes = self._changes(memory, share_events, moment)
        new = purchases(changes.player_events, changes.counts, moment)
        old = memory.players.find(changes.keys())
        # The player of a purchase that leaves the hour may have been erased meanwhile.
        states = advanced(old, changes)
        states = states.filter(pc.invert(pc.or_(states["erased"], pc.is_null(states["gamer_id"]))))
        forgotten, tombstones = self._forgotten()
        publisher = worker_publisher(self._plan.players)
        if self._plan.is_trial:
            publisher.encode(as_messages(states))
            return UpdateReport(path="", moment=0, states=0, readings=())
        publisher.publish(_keys_of(states), as_messages(states))
        publisher.forget(tombstones)
        changed = pa.concat_tables([states, forgotten])
        prefix = file_prefix(self._state.folder, self._state.batch_id, "change", self._share.label)
        path = write_change(self._store, prefix, changed, new)
        memory.apply(path, changed, new)
        # Not earlier: a second attempt at this batch needs the purchases that leave the hour with it.
        memory.hour.forget(moment)
        readings = tuple(each_share.reading for each_share in share_events if each_share.reading is not None)
        return UpdateReport(path=path, moment=moment, states=len(changed), readings=readings)

    def _changes(self, memory: ShareMemory, share_events: Sequence[ShareEvents], moment: int) -> PlayerChanges:
        tables = [decode_table(each_share.player_events) for each_share in share_events]
        player_events = in_order(pa.concat_tables([PLAYER_EVENTS_SCHEMA.empty_table(), *tables]))
        erased = np.frombuffer(self._state.erased, np.uint64)
        if len(erased):
            player_events = player_events.filter(
                pa.array(~np.isin(player_events["key"].to_numpy(), erased))
            ).combine_chunks()
        bought = np.flatnonzero(player_events["micros"].is_valid().to_numpy())
        counts = np.zeros(len(player_events), np.bool_)
        counts[bought] = memory.hour.new(events_of(player_events.take(pa.array(bought))))
        keys, micros = memory.hour.leaving(self._state.moment, moment)
        kept = ~np.isin(keys, erased)
        return PlayerChanges(player_events, counts, keys[kept], micros[kept], moment)

    def _forgotten(self) -> tuple[pa.Table, pa.Array]:
        """Return erased states of the share's players without a tombstone in the topic, and their keys in the topic."""
        games, gamer_ids, keys = keys_of_players(self._state.forgotten, self._state.seed)
        mine = pa.array(share_of(keys, self._state.shares) == self._share.number)
        states = blank(keys).filter(mine)
        gone = pa.array(np.ones(len(states), np.bool_))
        states = states.set_column(states.schema.get_field_index("erased"), "erased", gone)
        return states, player_keys(games.filter(mine), gamer_ids.filter(mine))


def keys_of_players(players: Sequence[tuple[str, str]], seed: str) -> tuple[pa.Array, pa.Array, Words]:
    """Convert players to columns, and compute their keys.

    Args:
        players: the game and the pseudonym of each player.
        seed: the seed of the stream's player keys.

    Returns:
        Games (string), pseudonyms (string) and keys (uint64), one for each of `players`, in their order.
    """
    games = pa.array([game for game, _ in players], pa.string())
    gamer_ids = pa.array([gamer_id for _, gamer_id in players], pa.string())
    if not players:
        return games, gamer_ids, np.zeros(0, np.uint64)
    distinct = games.dictionary_encode()
    tables = [game_table(game) for game in distinct.dictionary.to_pylist()]
    keys, _ = Identities(seed).of(tables, distinct.indices.to_numpy().astype(np.int64), gamer_ids)
    return games, gamer_ids, keys


def _keys_of(states: pa.Table) -> pa.Array:
    return player_keys(states["game"].combine_chunks(), states["gamer_id"].combine_chunks())


def as_messages(states: pa.Table) -> pa.Table:
    """Convert states to the topic's messages.

    Args:
        states: columns of `STATE_SCHEMA`.

    Returns:
        Columns of `ROW_SCHEMA`, in the same order of rows; unknown strings are empty.
    """
    rows = as_rows(states)
    for name in ("platform", "app_version", "country"):
        rows = rows.set_column(rows.schema.get_field_index(name), name, pc.fill_null(rows[name], ""))
    return rows
