"""Deletes history that is older than its retention: log entries, manifests, old checkpoints, claims of leases.

Their content is kept in compacted form, verified before anything is deleted, so that reconciliation, restores within
the window and the proofs of erasures need nothing older. Log entries that gold or the KPIs have yet to read stay.
The retention is in the games contract. The streams continue. Prints one JSON document. Settings come from
GAMELAKE_* variables (docs/settings.md). No Spark, no Kafka.
"""

import argparse
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from gamelake.command import add_confirmation, command_parser, is_confirmed, print_result, require_answer
from gamelake.contract.games import GamesContract
from gamelake.delta.listing import own_tables
from gamelake.maintenance.log_cleanup import CleanupResult, LogCleanup
from gamelake.model.errors import SettingsError
from gamelake.objects.settings import TableSettings
from gamelake.objects.store import Store
from gamelake.program import FAILED, run
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.refresh import GoldRefresh
from gamelake.serving.gold.runner import GoldTables
from gamelake.serving.gold.table import GoldTable
from gamelake.serving.kpis.refresh import KpiRefresh

# More would wait less for the store, but hold more logs in memory.
_TABLES_AT_ONCE = 2


def main() -> int:
    """Clean up, or print the dry run."""
    arguments = _arguments()
    settings = TableSettings.from_env()
    store, contract = Store(settings.lakehouse.location), load_gold(settings.games_file)
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
        return _print([plan.account() for plan in cleanup.plans(own_tables(store))])
    if not (arguments.yes or is_confirmed(f"Delete the history before {since:%Y-%m-%d %H:%M}? This can't be undone.")):
        return FAILED
    return _print([plan.carry_out(store) for plan in cleanup.plans(own_tables(store))])


def needed_versions(store: Store, contract: GamesContract) -> dict[str, int]:
    """Return, by table that gold or the KPIs read, the version that the slowest of them has read."""
    slowest: dict[str, int] = {}
    with ThreadPoolExecutor(_TABLES_AT_ONCE) as pool:
        for source, version in pool.map(lambda each: _read_version(store, each), GoldTables(store, contract).now()):
            if version is not None:
                slowest[source] = min(version, slowest.get(source, version))
    return slowest | {table: each.version for table, each in KpiRefresh(store, contract.zones).positions().items()}


def _read_version(store: Store, refresh: GoldRefresh) -> tuple[str, int | None]:
    gold = GoldTable.open(store, refresh.table, refresh.definition, refresh.zones)
    return refresh.source, gold.position.version if gold is not None and gold.position is not None else None


def _arguments() -> argparse.Namespace:
    parser = command_parser(__doc__)
    parser.add_argument("--retain-hours", type=float, help="keep history for this long; default: the contract's")
    add_confirmation(parser, "print what would be deleted, and delete nothing")
    arguments = parser.parse_args()
    require_answer(parser, arguments)
    arguments.retain = None if arguments.retain_hours is None else timedelta(hours=arguments.retain_hours)
    return arguments


def _print(results: Sequence[CleanupResult]) -> int:
    changed = [each for each in results if each.deleted_files or each.kept]
    return print_result(changed)


if __name__ == "__main__":
    run(main)
