"""Deletes files that no version within the retention needs; this can't be undone.

Covers all tables, or the named ones. The retention is in the games contract; one that is shorter than a restore, a
query or the KPI query needs is rejected, except for tables that --force names. Prints one JSON document. Settings come
from GAMELAKE_* variables (docs/settings.md). No Spark, no Kafka.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import msgspec

from gamelake.maintenance.vacuum import TableReader, TableVacuum, Vacuumed, require_retention, undecided_files
from gamelake.model.errors import SettingsError
from gamelake.model.games import GamesContract, load_games
from gamelake.model.logs import event_logger
from gamelake.model.naming import SILVER_EVENTS
from gamelake.program import FAILED, OK, run
from gamelake.serving.kpis.generations import KpiGenerations
from gamelake.serving.kpis.source import needed_since
from gamelake.storage.listing import table_paths
from gamelake.storage.settings import TableSettings
from gamelake.storage.store import Store

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
    for name in names:
        if name not in arguments.force:
            require_retention(name, since, readers(store, contract, name, now))
    vacuums = _vacuums(store, names, since)
    with ThreadPoolExecutor(_TABLES_AT_ONCE) as pool:
        would = list(pool.map(TableVacuum.plan, vacuums))
    if arguments.dry_run:
        return _print(would)
    if not (arguments.yes or _confirmed(would)):
        return FAILED
    # The answer may have taken hours: batches were decided meanwhile, and a restore may have brought files back.
    again = _vacuums(store, names, since)
    return _print([_vacuumed(vacuum, each) for vacuum, each in zip(again, would, strict=True)])


def _vacuums(store: Store, names: Sequence[str], since: datetime) -> list[TableVacuum]:
    undecided = undecided_files(store)
    return [TableVacuum(store, name, since, undecided) for name in names]


def readers(store: Store, contract: GamesContract, table: str, now: datetime) -> Iterator[TableReader]:
    """The readers that may need older versions of a table."""
    policy = contract.maintenance
    yield TableReader("a restore (maintenance.restore_window_days)", now - timedelta(days=policy.restore_window_days))
    yield TableReader("a query (maintenance.longest_query_hours)", now - timedelta(hours=policy.longest_query_hours))
    if table == SILVER_EVENTS:
        generations = KpiGenerations(store).all()
        since = needed_since(store, generations[-1]) if generations else None
        if since is not None:
            yield TableReader("the KPI query, which has read no further,", since)


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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="such as silver/kart_rumble_events; default: all")
    parser.add_argument("--retain-hours", type=float, help="keep versions for this long; default: the contract's")
    parser.add_argument(
        "--force",
        action="append",
        default=[],
        metavar="TABLE",
        help="vacuum this table even if readers may need it",
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would be deleted, and delete nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    arguments = parser.parse_args()
    hours = arguments.retain_hours
    if hours is not None and not hours > 0:
        parser.error("--retain-hours must be more than 0: a file that a query has just opened would be deleted")
    if not (arguments.yes or arguments.dry_run or sys.stdin.isatty()):
        parser.error("no terminal to ask for confirmation: use --yes or --dry-run")
    arguments.retain = None if hours is None else timedelta(hours=hours)
    return arguments


def _confirmed(would: Sequence[Vacuumed]) -> bool:
    files = sum(each.files for each in would)
    size = sum(each.bytes for each in would) / 2**20
    print(
        f"{files:,} files of {len(would)} tables, {size:,.1f} MiB, will be deleted. This can't be undone.",
        file=sys.stderr,
    )
    return input("Type yes to go on: ").strip() == "yes"


def _print(results: Sequence[Vacuumed]) -> int:
    print(msgspec.json.format(msgspec.json.encode(results)).decode())
    return OK


if __name__ == "__main__":
    run(main)
