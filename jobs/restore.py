"""Restores tables to a version, a time, or the state before a batch. Shows first what would change.

The streams continue, and neither lose nor duplicate a record; gold and the KPIs follow by themselves. With
--replay, the events of the batches whose rows were removed are then decoded again from bronze, with the current code
and contract. Prints one JSON document. Settings come from GAMELAKE_* variables (docs/settings.md). Needs Spark only
with --replay, and never Kafka. A restore can be undone by another restore.
"""

import argparse
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import msgspec

from gamelake.command import add_confirmation, command_parser, is_confirmed, print_result, require_answer
from gamelake.contract.games import GamesContract, load_games
from gamelake.delta.listing import appended_tables, games_of
from gamelake.delta.rewrites import maintenance_lease, revision_lease
from gamelake.ledger.coordinates import CoordinateRange
from gamelake.model.errors import SettingsError
from gamelake.model.naming import BRONZE_EVENTS, SILVER_EVENTS, game_of, game_table
from gamelake.objects.settings import LakehouseSettings, TableSettings
from gamelake.objects.store import Store
from gamelake.program import FAILED, moment, run
from gamelake.recovery.game_titles import RestoredTitles
from gamelake.recovery.replay.replayer import Replayed, ReplayRequest
from gamelake.recovery.replay.selection import Selection
from gamelake.recovery.replay.settings import ReplaySettings
from gamelake.recovery.replay.setup import replayer
from gamelake.recovery.restore import GameRestore, RestoredTable, TableRestore
from gamelake.recovery.stream_batches import StreamBatches
from gamelake.recovery.table_history import NONE_YET, TableHistory


class RestoreResult(msgspec.Struct, frozen=True, kw_only=True):
    """The restored tables, the streams that had written the removed rows, and the replay that followed."""

    restored: tuple[RestoredTable, ...]
    streams: tuple[str, ...]
    replayed: Replayed | None = None


def main() -> int:
    """Restore, or print the dry run."""
    arguments = _arguments()
    store = Store(LakehouseSettings.from_env().location)
    names = _names(store, arguments)
    # Settings that are missing are found before anything is changed.
    settings = ReplaySettings.from_env() if arguments.replay else None
    contract = load_games(TableSettings.from_env().games_file) if arguments.game else None
    done = _restore_tables(names, _Plans(store, arguments, StreamBatches.read(store), contract))
    if done is None:
        return FAILED
    result, coordinates = done
    if settings is None or arguments.dry_run or not coordinates:
        return print_result(result)
    with replayer("restore", settings) as opened:
        request = ReplayRequest(Selection(source=BRONZE_EVENTS, coordinates=coordinates), _silver(result.restored))
        replayed = opened.replay(request)
    return print_result(msgspec.structs.replace(result, replayed=replayed))


def _restore_tables(names: list[str], plans: "_Plans") -> tuple[RestoreResult, tuple[CoordinateRange, ...]] | None:
    """The restored tables or the dry run, and what to replay; None if the operator did not confirm."""
    store, arguments = plans.store, plans.arguments
    with ExitStack() as stack:
        # Take all leases before reading the logs, so that the restore does exactly what was shown.
        if not arguments.dry_run:
            stack.enter_context(revision_lease(store))
        leases = [] if arguments.dry_run else [stack.enter_context(maintenance_lease(store, name)) for name in names]
        restores = plans.restores(names)
        planned = tuple(each.dry_run() for each in restores)
        # What can't be replayed must not be removed.
        coordinates = plans.to_replay(planned)
        if not (arguments.dry_run or arguments.yes or is_confirmed("Restore the tables?", planned)):
            return None
        if not arguments.dry_run:
            planned = tuple(each.commit(lease) for each, lease in zip(restores, leases, strict=True))
    streams = plans.batches.streams({batch for each in planned for batch in each.batches})
    return RestoreResult(restored=planned, streams=streams), coordinates


def _silver(restored: Iterable[RestoredTable]) -> frozenset[str]:
    return frozenset(each.table for each in restored if each.table == SILVER_EVENTS or game_of(each.table))


@dataclass(frozen=True, slots=True)
class _Plans:
    """The restores that the arguments ask for; `contract` is given with --game."""

    store: Store
    arguments: argparse.Namespace
    batches: StreamBatches
    contract: GamesContract | None

    def restores(self, names: Sequence[str]) -> list[TableRestore | GameRestore]:
        """A restore of each table."""
        histories = _histories(self.store, names, self.arguments)
        versions = self._versions(histories)
        wholes = [TableRestore(self.store, *each) for each in zip(histories, versions, strict=True)]
        if self.contract is None:
            return [*wholes]
        table = game_table(self.arguments.game)
        [of_game] = [each for each in wholes if each.history.table == table]
        tables = frozenset(game_table(each) for each in games_of(self.store))
        titles = RestoredTitles(self.arguments.game, self.contract, tables, of_game.titles())
        return [each if each is of_game else GameRestore(each, titles) for each in wholes]

    def _versions(self, histories: Sequence[TableHistory]) -> list[int]:
        arguments = self.arguments
        if arguments.version is not None:
            return [each.at_version(arguments.version) for each in histories]
        if arguments.before_batch is not None:
            batch = arguments.before_batch
            applications = self.batches.applications_with(histories, batch, arguments.stream)
            return [each.before_batch(batch, applications) for each in histories]
        return [each.at_time_or_none_yet(arguments.time) for each in histories]

    def to_replay(self, planned: Sequence[RestoredTable]) -> tuple[CoordinateRange, ...]:
        """The records to replay after a restore; none without --replay."""
        silver = _silver(planned)
        removed = {batch for each in planned if each.table in silver for batch in each.batches}
        return self.batches.coordinates(removed, silver) if self.arguments.replay else ()


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
    parser = command_parser(__doc__)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="such as silver/kart_rumble_events")
    parser.add_argument("--game", help="one game: its table, and its rows in silver/events")
    parser.add_argument("--all", action="store_true", help="all tables but gold, which follows silver")
    to = parser.add_mutually_exclusive_group(required=True)
    to.add_argument("--version", type=int, help="restore to this version")
    to.add_argument("--time", type=moment, help="restore to this time, such as 2026-11-22T14:00:00Z")
    to.add_argument("--before-batch", type=int, metavar="BATCH", help="restore to the version before this batch")
    parser.add_argument("--stream", help="with --before-batch: whose batch, if several streams have come to it")
    parser.add_argument("--replay", action="store_true", help="then decode the removed events again from bronze")
    add_confirmation(parser, "print what would change, and change nothing")
    arguments = parser.parse_args()
    if problem := _problem(arguments):
        parser.error(problem)
    require_answer(parser, arguments)
    return arguments


def _problem(arguments: argparse.Namespace) -> str:
    """Options that exclude each other; empty if there are none."""
    if [arguments.all, bool(arguments.tables), arguments.game is not None].count(True) != 1:
        return "name the tables, or use --game or --all"
    problems = {
        "--all goes with --time: tables have versions and batches of their own": arguments.all
        and arguments.time is None,
        "--game goes with --time or --before-batch: its tables have versions of their own": arguments.game
        and arguments.version is not None,
        "--stream goes with --before-batch": arguments.stream and arguments.before_batch is None,
        "--replay reads bronze, which --all restores too; name the silver tables, or a game": arguments.replay
        and arguments.all,
    }
    return next((problem for problem, is_there in problems.items() if is_there), "")


if __name__ == "__main__":
    run(main)
