"""Restores tables to a version, a time, or the state before a batch. Shows first what would change.

The streams continue, and neither lose nor duplicate a record; gold and the key figures follow by themselves. With
--replay, the events of the batches whose rows were removed are then decoded again from bronze, with the current code
and contract. Prints one JSON document. Settings come from GAMELAKE_* variables (docs/settings.md). Needs Spark only
with --replay, and never Kafka. A restore can be undone by another restore.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack

import msgspec

from gamelake.model.errors import SettingsError
from gamelake.model.naming import BRONZE_EVENTS, SILVER_EVENTS, game_of, game_table
from gamelake.program import FAILED, OK, moment, run
from gamelake.recovery.replay.replayer import Replayed, ReplayRequest
from gamelake.recovery.replay.selection import Selection, offsets_of, streams_in
from gamelake.recovery.replay.settings import ReplaySettings
from gamelake.recovery.replay.setup import replayer
from gamelake.recovery.restore import GameRestore, RestoredTable, TableRestore, names_in
from gamelake.recovery.table_history import NONE_YET, TableHistory
from gamelake.storage.listing import appended_tables, games_of
from gamelake.storage.rewrites import maintenance_lease, revision_lease
from gamelake.storage.settings import LakehouseSettings
from gamelake.storage.store import Store


class RestoreResult(msgspec.Struct, frozen=True, kw_only=True):
    """The restored tables, the streams that had written the removed rows, and the replay that followed."""

    restored: tuple[RestoredTable, ...]
    streams: tuple[str, ...]
    replayed: Replayed | None = None


def main() -> int:
    """Restore, or print the dry run."""
    arguments = _arguments()
    store = Store(LakehouseSettings.from_env().location)
    # Settings of --replay are read before anything is changed.
    settings = ReplaySettings.from_env() if arguments.replay else None
    restored = _restore_tables(store, arguments)
    if restored is None:
        return FAILED
    batches = {batch for each in restored for batch in each.batches}
    result = RestoreResult(restored=restored, streams=streams_in(store, batches))
    lacking = frozenset(each.table for each in restored if each.table == SILVER_EVENTS or game_of(each.table))
    if settings is None or arguments.dry_run or not lacking:
        return _print(result)
    offsets = offsets_of(store, batches)
    with replayer("restore", settings) as opened:
        request = ReplayRequest(Selection(source=BRONZE_EVENTS, offsets=offsets), lacking)
        replayed = opened.replay(request) if offsets else None
    return _print(msgspec.structs.replace(result, replayed=replayed))


def _restore_tables(store: Store, arguments: argparse.Namespace) -> tuple[RestoredTable, ...] | None:
    """The restored tables, or the dry run; None if the operator did not confirm."""
    names = _names(store, arguments)
    with ExitStack() as stack:
        # Take all leases before reading the logs, so that the restore does exactly what was shown.
        if not arguments.dry_run:
            stack.enter_context(revision_lease(store))
        leases = [] if arguments.dry_run else [stack.enter_context(maintenance_lease(store, name)) for name in names]
        restores = [_restore(store, history, arguments) for history in _histories(store, names, arguments)]
        planned = [each.dry_run() for each in restores]
        if arguments.dry_run:
            return tuple(planned)
        if not (arguments.yes or _confirmed(planned)):
            return None
        return tuple(each.commit(lease) for each, lease in zip(restores, leases, strict=True))


def _restore(store: Store, history: TableHistory, arguments: argparse.Namespace) -> TableRestore | GameRestore:
    if arguments.version is not None:
        version = history.at_version(arguments.version)
    elif arguments.before_batch is not None:
        version = history.before_batch(arguments.before_batch)
    else:
        version = history.at_time_or_none_yet(arguments.time)
    whole = TableRestore(store, history, version)
    if arguments.game and history.table == SILVER_EVENTS:
        return GameRestore(whole, names_in(store, game_table(arguments.game)))
    return whole


def _histories(store: Store, names: Sequence[str], arguments: argparse.Namespace) -> list[TableHistory]:
    """Read the logs of the tables; a time before all of them is rejected as a mistake."""
    histories = [TableHistory.read(store, name) for name in names]
    if arguments.time and all(each.at_time_or_none_yet(arguments.time) == NONE_YET for each in histories):
        histories[0].at_time(arguments.time)
    return histories


def _names(store: Store, arguments: argparse.Namespace) -> list[str]:
    if arguments.game:
        if arguments.game not in games_of(store):
            raise SettingsError(f"'{arguments.game}' is not a game; the games are: {', '.join(games_of(store))}")
        return sorted([SILVER_EVENTS, game_table(arguments.game)])
    there = appended_tables(store)
    if unknown := sorted(set(arguments.tables) - set(there)):
        raise SettingsError(
            f"'{unknown[0]}' can't be restored (gold follows silver); the tables are: {', '.join(there)}"
        )
    return sorted(set(arguments.tables)) if arguments.tables else there


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="such as silver/kart_rumble_events")
    parser.add_argument("--game", help="one game: its table, and its rows in silver/events")
    parser.add_argument("--all", action="store_true", help="all tables but gold, which follows silver")
    to = parser.add_mutually_exclusive_group(required=True)
    to.add_argument("--version", type=int, help="restore to this version")
    to.add_argument("--time", type=moment, help="restore to this time, such as 2026-11-22T14:00:00Z")
    to.add_argument("--before-batch", type=int, metavar="BATCH", help="restore to the version before this batch")
    parser.add_argument("--replay", action="store_true", help="then decode the removed events again from bronze")
    parser.add_argument("--dry-run", action="store_true", help="print what would change, and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    arguments = parser.parse_args()
    if problem := _problem(arguments):
        parser.error(problem)
    return arguments


def _problem(arguments: argparse.Namespace) -> str:
    """Options that exclude each other; empty if there are none."""
    if [arguments.all, bool(arguments.tables), arguments.game is not None].count(True) != 1:
        return "name the tables, or use --game or --all"
    if arguments.all and arguments.time is None:
        return "--all goes with --time: tables have versions and batches of their own"
    if arguments.game and arguments.version is not None:
        return "--game goes with --time or --before-batch: its tables have versions of their own"
    if arguments.replay and arguments.all:
        return "--replay reads bronze, which --all restores too; name the silver tables, or a game"
    if not (arguments.yes or arguments.dry_run or sys.stdin.isatty()):
        return "no terminal to ask for confirmation: use --yes or --dry-run"
    return ""


def _confirmed(planned: Sequence[RestoredTable]) -> bool:
    print(msgspec.json.format(msgspec.json.encode(planned)).decode(), file=sys.stderr)
    return input("Type yes to restore the tables: ").strip() == "yes"


def _print(result: RestoreResult) -> int:
    print(msgspec.json.format(msgspec.json.encode(result)).decode())
    return OK


if __name__ == "__main__":
    run(main)
