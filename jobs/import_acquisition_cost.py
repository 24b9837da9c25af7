"""Imports the cost of new players from a CSV file on the standard input: `date,game,source,campaign,currency,cost`.

A column `country` may follow. `game` is the game's name in games.yaml, and `source` the network as `install.source` of
the game's events names it. A file replaces earlier rows of the same games, sources and days. Prints the result as JSON.
Settings come from GAMELAKE_* variables (docs/settings.md).
"""

import sys

from gamelake.command import command_parser, print_result
from gamelake.contract.games import load_games
from gamelake.objects.settings import TableSettings
from gamelake.objects.store import Store
from gamelake.program import OK, run
from gamelake.serving.money.acquisition_cost import import_cost, read_cost


def main() -> int:
    """Import the cost in one file."""
    parser = command_parser(__doc__)
    parser.add_argument("--dry-run", action="store_true", help="only check the file, and print what it has")
    options = parser.parse_args()
    settings = TableSettings.from_env()
    titles = {game.name: game.game_name for game in load_games(settings.games_file).games}
    cost = read_cost(sys.stdin, "standard input", titles)
    print_result(import_cost(Store(settings.lakehouse.location), cost, dry_run=options.dry_run))
    return OK


if __name__ == "__main__":
    run(main)
