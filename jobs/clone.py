"""Clones tables for analysts, as they were at a version or a time, without copying data where possible.

Clones one table, several, or all of a game (silver and gold), under a name: silver/kart_rumble_events of the clone
`before` is clones.before_kart_rumble_events in SQL. On an object store a clone of silver references the source's files,
which vacuum keeps as long as the clone exists; --copy gives it files of its own. An erasure drops clones with rows of
the erased player. Prints one JSON document. Settings come from GAMELAKE_* variables (docs/settings.md). No Spark, no
Kafka.
"""

import argparse
from collections.abc import Sequence

from gamelake.command import command_parser, print_result
from gamelake.ledger.clones import CloneKind, Clones
from gamelake.model.errors import SettingsError
from gamelake.objects.settings import LakehouseSettings
from gamelake.objects.store import Store
from gamelake.program import moment, run
from gamelake.recovery.cloning import Cloning, Moment, cloneable, default_kind, tables_of


def main() -> int:
    """Make a clone, print its dry run, drop a clone, or list all."""
    arguments = _arguments()
    store = Store(LakehouseSettings.from_env().location)
    clones = Clones(store)
    if arguments.list:
        return print_result(clones.held())
    if arguments.drop:
        clone = clones.named(arguments.drop)
        if not arguments.dry_run:
            clones.drop(clone)
        return print_result(clone)
    cloning = Cloning(
        store=store,
        name=arguments.name,
        sources=_sources(store, arguments),
        moment=_moment(arguments),
        kind=arguments.kind or default_kind(store),
    )
    return print_result(cloning.plan() if arguments.dry_run else cloning.make())


def _sources(store: Store, arguments: argparse.Namespace) -> Sequence[str]:
    there = cloneable(store)
    if arguments.game:
        if not (found := tables_of(store, arguments.game)):
            raise SettingsError(f"there is no table of a game '{arguments.game}'; the tables are: {', '.join(there)}")
        return found
    if unknown := sorted(set(arguments.tables) - set(there)):
        raise SettingsError(f"'{unknown[0]}' can't be cloned; the tables are: {', '.join(there)}")
    return sorted(set(arguments.tables))


def _moment(arguments: argparse.Namespace) -> Moment:
    if arguments.version is not None:
        return lambda history: history.at_version(arguments.version)
    if arguments.time is not None:
        return lambda history: history.at_time(arguments.time)
    # Not the version of this machine's time, which the writers' clocks may be ahead of.
    return lambda history: history.newest


def _arguments() -> argparse.Namespace:
    parser = command_parser(__doc__)
    parser.add_argument("name", nargs="?", help="the clone's name: a-z, 0-9 and _")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="such as silver/kart_rumble_events")
    parser.add_argument("--game", help="all tables of this game, in place of TABLE")
    to = parser.add_mutually_exclusive_group()
    to.add_argument("--version", type=int, help="clone this version of the table; default: the newest")
    to.add_argument("--time", type=moment, help="clone the version of this time, such as 2026-11-22T14:00:00Z")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--copy", dest="kind", action="store_const", const=CloneKind.COPY, help="with files of its own")
    kind.add_argument(
        "--shallow",
        dest="kind",
        action="store_const",
        const=CloneKind.SHALLOW,
        help="with the source's files (object stores)",
    )
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--drop", metavar="NAME", help="delete a clone")
    other.add_argument("--list", action="store_true", help="all clones, and the bytes that vacuum keeps for each")
    parser.add_argument("--dry-run", action="store_true", help="print what would be done, and change nothing")
    arguments = parser.parse_args()
    is_making = not (arguments.drop or arguments.list)
    if is_making != bool(arguments.name) or (is_making and bool(arguments.game) == bool(arguments.tables)):
        parser.error("name the clone and its tables, or use --game; --drop and --list take no other arguments")
    if arguments.version is not None and (arguments.game or len(arguments.tables) > 1):
        parser.error("--version requires a single table, as each has versions of its own; use --time for several")
    return arguments


if __name__ == "__main__":
    run(main)
