"""Restores tables to a version, a time, or the state before a batch. Shows first what would change.

The streams continue, and neither lose nor duplicate a record; gold and the KPIs follow by themselves. With
--replay, the events of the batches whose rows were removed are then decoded again from bronze, with the current code
and contract. Prints one JSON document. Settings come from GAMELAKE_* variables (docs/settings.md). Needs Spark only
with --replay, and never Kafka. A restore can be undone by another restore.
"""

import argparse
from collections.abc import Iterable, Sequence
from contextlib import ExitStack

import msgspec

from gamelake.command import add_confirmation, command_parser, is_confirmed, print_result, require_answer
from gamelake.contract.games import load_games
from gamelake.delta.listing import appended_tables, games_of
from gamelake.delta.rewrites import maintenance_lease, revision_lease
from gamelake.ledger.coordinates import CoordinateRange
from gamelake.model.errors import SettingsError
from gamelake.model.naming import BRONZE_EVENTS, SILVER_EVENTS, game_of, game_table
from gamelake.objects.settings import LakehouseSettings, TableSettings
from gamelake.objects.store import Store
from gamelake.program import FAILED, moment, run
from gamelake.recovery.replay.execution import Selection
from gamelake.recovery.replay.replayer import Replayed, ReplayRequest, replayer
from gamelake.recovery.replay.settings import ReplaySettings
from gamelake.recovery.restore import GameRestore, RestoredTable, RestoredTitles, TableRestore
from gamelake.recovery.stream_batches import StreamBatches
from gamelake.recovery.table_history import NONE_YET, TableHistory


class RestoreResult(msgspec.Struct, frozen=True, kw_only=True):
    """The restored tables, the streams that had written the removed rows, and the replay that followed."""

    restored: tuple[RestoredTable, ...]
    streams: tuple[str, ...]
    replayed: Replayed | None = None


def main() -> int:
    """Restore, or print the dry run."""
    return _Restore(_arguments()).run()


class _Restore:
    """The restore that the arguments ask for."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._store = Store(LakehouseSettings.from_env().location)
        self._tables = self._named()
        # Settings that are missing are found before anything is changed.
        self._settings = ReplaySettings.from_env() if arguments.replay else None
        self._contract = load_games(TableSettings.from_env().games_file) if arguments.game else None
        self._batches = StreamBatches(self._store)

    def run(self) -> int:
        """Restore the tables and replay, or print the dry run; the result is the exit code."""
        store, is_dry = self._store, self._arguments.dry_run
        with ExitStack() as stack:
            # Take all leases before reading the logs, so that the restore does exactly what was shown.
            if not is_dry:
                stack.enter_context(revision_lease(store))
            tables = () if is_dry else self._tables
            leases = [stack.enter_context(maintenance_lease(store, name)) for name in tables]
            restores = self._restores()
            planned = tuple(each.dry_run() for each in restores)
            # What can't be replayed must not be removed.
            coordinates = self._to_replay(planned)
            if not (is_dry or self._arguments.yes or is_confirmed("Restore the tables?", planned)):
                return FAILED
            if not is_dry:
                planned = tuple(each.commit(lease) for each, lease in zip(restores, leases, strict=True))
        streams = self._batches.streams({batch for each in planned for batch in each.batches})
        result = RestoreResult(restored=planned, streams=streams)
        if self._settings is None or is_dry or not coordinates:
            return print_result(result)
        with replayer("restore", self._settings) as replays:
            request = ReplayRequest(Selection(source=BRONZE_EVENTS, coordinates=coordinates), _silver(planned))
            replayed = replays.replay(request)
        return print_result(msgspec.structs.replace(result, replayed=replayed))

    def _named(self) -> list[str]:
        """Return the tables to restore, sorted."""
        arguments = self._arguments
        if arguments.game:
            if arguments.game not in (games := games_of(self._store)):
                raise SettingsError(f"'{arguments.game}' is not a game; the games are: {', '.join(games)}")
            return sorted([SILVER_EVENTS, game_table(arguments.game)])
        there = appended_tables(self._store)
        if unknown := sorted(set(arguments.tables) - set(there)):
            raise SettingsError(
                f"'{unknown[0]}' can't be restored (gold follows silver); the tables are: {', '.join(there)}"
            )
        return sorted(set(arguments.tables)) if arguments.tables else there

    def _restores(self) -> list[TableRestore | GameRestore]:
        """Return a restore of each table."""
        histories = [TableHistory.read(self._store, name) for name in self._tables]
        wholes = [TableRestore(*each) for each in zip(histories, self._versions(histories), strict=True)]
        if self._contract is None:
            return [*wholes]
        table = game_table(self._arguments.game)
        [of_game] = [each for each in wholes if each.history.table == table]
        tables = frozenset(game_table(each) for each in games_of(self._store))
        titles = RestoredTitles(self._arguments.game, self._contract, tables, of_game.titles())
        return [each if each is of_game else GameRestore(each, titles) for each in wholes]

    def _versions(self, histories: Sequence[TableHistory]) -> list[int]:
        arguments = self._arguments
        if arguments.version is not None:
            return [each.at_version(arguments.version) for each in histories]
        if arguments.before_batch is not None:
            applications = self._batches.applications_with(histories, arguments.before_batch, arguments.stream)
            return [each.before_batch(arguments.before_batch, applications) for each in histories]
        versions = [each.at_time_or_none_yet(arguments.time) for each in histories]
        # A time before all tables is rejected as a mistake.
        return versions if set(versions) != {NONE_YET} else [each.at_time(arguments.time) for each in histories]

    def _to_replay(self, planned: Sequence[RestoredTable]) -> tuple[CoordinateRange, ...]:
        """Return the records to replay after the restore; none without --replay."""
        silver = _silver(planned)
        removed = {batch for each in planned if each.table in silver for batch in each.batches}
        return self._batches.coordinates(removed, silver) if self._arguments.replay else ()


def _silver(restored: Iterable[RestoredTable]) -> frozenset[str]:
    return frozenset(each.table for each in restored if each.table == SILVER_EVENTS or game_of(each.table))


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
