"""Repairs a table's log: rebuilds damaged entries from the manifests of their batches, while the streams continue.

Prints one JSON document with an object for each entry. Settings come from GAMELAKE_* variables (docs/settings.md).
Needs neither Spark nor Kafka. Exits with 2 and changes nothing if an entry belongs to no batch.
"""

from gamelake.command import add_confirmation, command_parser, is_confirmed, print_result, require_answer
from gamelake.objects.settings import LakehouseSettings
from gamelake.objects.store import Store
from gamelake.program import FAILED, run
from gamelake.recovery.log_repair import LogRepair


def main() -> int:
    """Repair, or print the dry run."""
    parser = command_parser(__doc__)
    parser.add_argument("table", metavar="TABLE", help="such as silver/kart_rumble_events")
    add_confirmation(parser, "print what would be written, and change nothing")
    arguments = parser.parse_args()
    require_answer(parser, arguments)
    store = Store(LakehouseSettings.from_env().location)
    repair = LogRepair(store, arguments.table)
    planned = repair.dry_run()
    if arguments.dry_run or not planned:
        return print_result(planned)
    if not (arguments.yes or is_confirmed("Write these entries?", planned)):
        return FAILED
    return print_result(repair.repair())


if __name__ == "__main__":
    run(main)
