"""Deletes history that is older than its retention: log entries, manifests, old checkpoints, claims of leases.

Their content is kept in compacted form, verified before anything is deleted, so that reconciliation, restores within
the window and the proofs of erasures need nothing older. Log entries that gold or the key figures have yet to read
stay. The retention is in the games contract. The streams continue. Prints one JSON document. Settings come from
GAMELAKE_* variables (docs/settings.md). No Spark, no Kafka.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import msgspec

from gamelake.maintenance.log_cleanup import CleanupPlan, CleanupResult, LogCleanup
from gamelake.model.errors import SettingsError
from gamelake.model.games import GamesContract, load_games
from gamelake.model.naming import SILVER_EVENTS
from gamelake.program import FAILED, OK, run
from gamelake.serving.gold.refresh import GoldRefresh
from gamelake.serving.gold.runner import GoldTables
from gamelake.serving.gold.table import GoldTable
from gamelake.serving.kpis.generations import KpiGenerations
from gamelake.serving.kpis.source import needed_from
from gamelake.storage.listing import own_tables
from gamelake.storage.settings import TableSettings
from gamelake.storage.store import Store

# More would wait less for the store, but hold more logs in memory.
_TABLES_AT_ONCE = 2


def main() -> int:
    """Clean up, or print the dry run."""
    arguments = _arguments()
    settings = TableSettings.from_env()
    store, contract = Store(settings.lakehouse.location), load_games(settings.games_file)
    retention = arguments.retain or contract.maintenance.retention
    if retention < contract.maintenance.least_retention:
        raise SettingsError(
            f"--retain-hours {retention / timedelta(hours=1):g} is less than a restore or a query may need "
            f"({contract.maintenance.least_retention / timedelta(hours=1):g}), by maintenance: in the games contract"
        )
    now = datetime.now(UTC)
    since, today = now - retention, now.replace(hour=0, minute=0, second=0, microsecond=0)
    cleanup = LogCleanup(
        store=store, since=since, compact_before=max(since, today), needed_from=needed_versions(store, contract)
    )
    if arguments.dry_run:
        return _print([plan.account() for plan in _plans(cleanup)])
    if not (arguments.yes or _confirmed(since)):
        return FAILED
    return _print([plan.carry_out(store) for plan in _plans(cleanup)])


def _plans(cleanup: LogCleanup) -> Iterator[CleanupPlan]:
    yield from cleanup.plans(own_tables(cleanup.store))
    yield from old_kpi_checkpoints(cleanup)


def needed_versions(store: Store, contract: GamesContract) -> dict[str, int]:
    """By table that gold or the key figures read: the version that the slowest of them has read."""
    slowest: dict[str, int] = {}
    with ThreadPoolExecutor(_TABLES_AT_ONCE) as pool:
        for source, version in pool.map(lambda each: _read_version(store, each), GoldTables(store, contract).now()):
            if version is not None:
                slowest[source] = min(version, slowest.get(source, version))
    generations = KpiGenerations(store).all()
    kpis = needed_from(store, generations[-1]) if generations else None
    if kpis is not None:
        slowest[SILVER_EVENTS] = min(kpis, slowest.get(SILVER_EVENTS, kpis))
    return slowest


def _read_version(store: Store, refresh: GoldRefresh) -> tuple[str, int | None]:
    gold = GoldTable.open(store, refresh.table, refresh.definition)
    return refresh.source, gold.position.version if gold is not None and gold.position is not None else None


def old_kpi_checkpoints(cleanup: LogCleanup) -> Iterator[CleanupPlan]:
    """Spark checkpoints of former generations of the key figures, superseded before the retention."""
    over = [
        former
        for former, after in pairwise(KpiGenerations(cleanup.store).all())
        if datetime.fromisoformat(after.created_at) < cleanup.since
    ]
    files = [each for former in over for each in cleanup.store.objects(former.checkpoint)]
    if files:
        yield CleanupPlan("old checkpoints of the key figures", files)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--retain-hours", type=float, help="keep history for this long; default: the contract's")
    parser.add_argument("--dry-run", action="store_true", help="print what would be deleted, and delete nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    arguments = parser.parse_args()
    if not (arguments.yes or arguments.dry_run or sys.stdin.isatty()):
        parser.error("no terminal to ask for confirmation: use --yes or --dry-run")
    arguments.retain = None if arguments.retain_hours is None else timedelta(hours=arguments.retain_hours)
    return arguments


def _confirmed(since: datetime) -> bool:
    print(f"History before {since:%Y-%m-%d %H:%M} will be deleted. This can't be undone.", file=sys.stderr)
    return input("Type yes to go on: ").strip() == "yes"


def _print(results: Sequence[CleanupResult]) -> int:
    changed = [each for each in results if each.deleted_files or each.kept]
    print(msgspec.json.format(msgspec.json.encode(changed)).decode())
    return OK


if __name__ == "__main__":
    run(main)
