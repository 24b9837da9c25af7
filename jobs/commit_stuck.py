"""Commits decided batches and replays that a table can't take, without the columns whose types conflict.

For a table that is held back because of a column of another type, and for a replay that ends with
IncompatibleSchemaError at each start. The rows stay, the values of these
columns are null in them; bronze has the whole records. Prints one JSON document with an object for each such table.
Settings come from GAMELAKE_* variables (docs/settings.md). No Spark, no Kafka. A run that was killed can be repeated.
"""

import argparse
import sys

import msgspec

from gamelake.program import FAILED, OK, run
from gamelake.recovery.stuck_decisions import StuckDecisions, StuckTable
from gamelake.storage.settings import LakehouseSettings
from gamelake.storage.store import Store
from gamelake.storage.tables import DeltaTables


def main() -> int:
    """Commit, or print the dry run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true", help="print what is stuck, and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    arguments = parser.parse_args()
    if not (arguments.yes or arguments.dry_run or sys.stdin.isatty()):
        parser.error("no terminal to ask for confirmation: use --yes or --dry-run")
    location = LakehouseSettings.from_env().location
    with DeltaTables(location) as tables:
        stuck = StuckDecisions(Store(location), tables)
        planned = stuck.dry_run()
        if arguments.dry_run or not planned:
            return _print(planned)
        if not (arguments.yes or _confirmed(planned)):
            return FAILED
        return _print(stuck.release())


def _confirmed(planned: list[StuckTable]) -> bool:
    print(msgspec.json.format(msgspec.json.encode(planned)).decode(), file=sys.stderr)
    return input("Type yes to commit without the values of these columns: ").strip() == "yes"


def _print(results: list[StuckTable]) -> int:
    print(msgspec.json.format(msgspec.json.encode(results)).decode())
    return OK


if __name__ == "__main__":
    run(main)
