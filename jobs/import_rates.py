"""Imports exchange rates from a CSV file on the standard input, with the header `date,currency,usd`.

`usd` is the value of one unit of the currency in US dollars. A rate replaces that of the same currency and date, so
that a file can be imported again. Prints the result as JSON. Settings come from GAMELAKE_* variables
(docs/settings.md).
"""

import sys

from gamelake.command import command_parser, print_result
from gamelake.objects.settings import TableSettings
from gamelake.objects.store import Store
from gamelake.program import OK, run
from gamelake.serving.money.rates import import_rates, read_rates


def main() -> int:
    """Import the rates of one file."""
    parser = command_parser(__doc__)
    parser.add_argument("--dry-run", action="store_true", help="only check the file, and print what would change")
    options = parser.parse_args()
    rates = read_rates(sys.stdin, "standard input")
    print_result(import_rates(Store(TableSettings.from_env().lakehouse.location), rates, dry_run=options.dry_run))
    return OK


if __name__ == "__main__":
    run(main)
