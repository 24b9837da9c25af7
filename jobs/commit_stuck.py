"""Commits decided batches and replays that a table can't take, without the columns whose types conflict.

For a table that is held back because of a column of another type, and for a replay that ends with
IncompatibleSchemaError at each start, which the next replay commits. The rows stay, the values of these columns are
null in them; bronze has the whole records. Prints one JSON document with an object for each such table.
Settings come from GAMELAKE_* variables (docs/settings.md). No Spark, no Kafka. A run that was killed can be repeated.
"""

from gamelake.command import add_confirmation, command_parser, is_confirmed, print_result, require_answer
from gamelake.ledger.held_tables import stream_tables
from gamelake.objects.settings import LakehouseSettings
from gamelake.program import FAILED, run
from gamelake.recovery.stuck_decisions import StuckDecisions


def main() -> int:
    """Commit, or print the dry run."""
    parser = command_parser(__doc__)
    add_confirmation(parser, "print what is stuck, and change nothing")
    arguments = parser.parse_args()
    require_answer(parser, arguments)
    with stream_tables(LakehouseSettings.from_env().location) as tables:
        stuck = StuckDecisions(tables)
        planned = stuck.dry_run()
        if arguments.dry_run or not planned:
            return print_result(planned)
        if not (arguments.yes or is_confirmed("Commit without the values of these columns?", planned)):
            return FAILED
        return print_result(stuck.release())


if __name__ == "__main__":
    run(main)
