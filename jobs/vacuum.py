"""Deletes files that no version within the retention needs; this can't be undone.

Covers all tables, or the named ones. The retention is in the games contract; one that is shorter than a restore or a
query needs is rejected, except for tables that --force names. Prints one JSON document. Settings come from GAMELAKE_*
variables (docs/settings.md). No Spark, no Kafka.
"""

import argparse
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from gamelake.command import add_confirmation, command_parser, is_confirmed, print_result, require_answer
from gamelake.contract.games import GamesContract, load_games
from gamelake.delta.listing import table_paths
from gamelake.maintenance.vacuum import (
    TableReader,
    TableVacuum,
    Vacuumed,
    require_retention,
    undecided_files,
)
from gamelake.model.errors import SettingsError
from gamelake.model.logs import event_logger
from gamelake.objects.settings import TableSettings
from gamelake.objects.store import Store
from gamelake.program import FAILED, run

log = event_logger("vacuum")

# More would wait less for the store, but hold more logs in memory.
_TABLES_AT_ONCE = 2


def main() -> int:
    """Delete, or print the dry run."""
    arguments = _arguments()
    settings = TableSettings.from_env()
    store, contract = Store(settings.lakehouse.location), load_games(settings.games_file)
    now = datetime.now(UTC)
    since = now - (arguments.retain or contract.maintenance.retention)
    names = _names(store, [*arguments.tables, *arguments.force])
    for name in (name for name in names if name not in arguments.force):
        require_retention(name, since, readers(contract, now))
    vacuums = _vacuums(store, names, since)
    with ThreadPoolExecutor(_TABLES_AT_ONCE) as pool:
        would = list(pool.map(TableVacuum.plan, vacuums))
    if arguments.dry_run:
        return print_result(would)
    if not (arguments.yes or _confirmed(would)):
        return FAILED
    # The answer may have taken hours: batches were decided meanwhile, and a restore may have brought files back.
    again = _vacuums(store, names, since)
    return print_result([_vacuumed(vacuum, each) for vacuum, each in zip(again, would, strict=True)])


def _vacuums(store: Store, names: Sequence[str], since: datetime) -> list[TableVacuum]:
    undecided = undecided_files(store)
    return [TableVacuum(store, name, since, undecided) for name in names]


def readers(contract: GamesContract, now: datetime) -> Iterator[TableReader]:
    """Yield the readers that may need older versions of any table."""
    policy = contract.maintenance
    yield TableReader("a restore (maintenance.restore_window_days)", now - timedelta(days=policy.restore_window_days))
    yield TableReader("a query (maintenance.longest_query_hours)", now - timedelta(hours=policy.longest_query_hours))


def _vacuumed(vacuum: TableVacuum, planned: Vacuumed) -> Vacuumed:
    if not planned.files:
        return planned
    done = vacuum.run()
    log.info("table_vacuumed", table=done.table, files=done.files, bytes=done.bytes)
    if done.files != planned.files:
        log.warning("vacuum_plan_changed", table=done.table, planned=planned.files, files=done.files)
    return done


def _names(store: Store, wanted: Sequence[str]) -> list[str]:
    there = table_paths(store)
    if unknown := sorted(set(wanted) - set(there)):
        raise SettingsError(f"there is no table '{unknown[0]}'; the tables are: {', '.join(there)}")
    return sorted(set(wanted)) or there


def _arguments() -> argparse.Namespace:
    parser = command_parser(__doc__)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="such as silver/kart_rumble_events; default: all")
    parser.add_argument("--retain-hours", type=float, help="keep versions for this long; default: the contract's")
    parser.add_argument(
        "--force",
        action="append",
        default=[],
        metavar="TABLE",
        help="vacuum this table even if readers may need it",
    )
    add_confirmation(parser, "print what would be deleted, and delete nothing")
    arguments = parser.parse_args()
    hours = arguments.retain_hours
    if hours is not None and not hours > 0:
        parser.error("--retain-hours must be more than 0: a file that a query has just opened would be deleted")
    require_answer(parser, arguments)
    arguments.retain = None if hours is None else timedelta(hours=hours)
    return arguments


def _confirmed(would: Sequence[Vacuumed]) -> bool:
    files = sum(each.files for each in would)
    size = sum(each.bytes for each in would) / 2**20
    return is_confirmed(f"Delete {files:,} files of {len(would)} tables, {size:,.1f} MiB? This can't be undone.")


if __name__ == "__main__":
    run(main)
