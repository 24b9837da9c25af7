"""Imports a sales report of an app store from the standard input, to compare it with events.

The App Store's is the Summary Sales Report (tab-separated), Google Play's the estimated sales report (CSV). A report
replaces earlier ones of the same store, game and days. Prints the result as JSON. Settings come from GAMELAKE_*
variables (docs/settings.md).
"""

import sys

from gamelake.command import command_parser, one_of, print_result
from gamelake.contract.games import load_games
from gamelake.model.choices import allowed
from gamelake.model.errors import ContractError
from gamelake.objects.settings import TableSettings
from gamelake.objects.store import Store
from gamelake.program import OK, run
from gamelake.serving.money.store_reports import ReportingStore, import_report, read_report


def main() -> int:
    """Import one report."""
    parser = command_parser(__doc__)
    parser.add_argument("store", type=one_of(ReportingStore), help="app_store or google_play")
    parser.add_argument("--game", required=True, help="the game's name in games.yaml")
    parser.add_argument(
        "--app", required=True, help="the app in the report: its package on Google Play, its SKU in the App Store"
    )
    parser.add_argument("--dry-run", action="store_true", help="only check the report, and print what it has")
    options = parser.parse_args()
    settings = TableSettings.from_env()
    games = {game.name: game for game in load_games(settings.games_file).games}
    if options.game not in games:
        raise ContractError(f"{settings.games_file} has no game '{options.game}'; name {allowed(games, options.game)}")
    game = games[options.game]
    report = read_report(sys.stdin, "standard input", options.store, options.app, game.game_name)
    print_result(import_report(Store(settings.lakehouse.location), report, dry_run=options.dry_run))
    return OK


if __name__ == "__main__":
    run(main)
