"""Brings the comments of all tables and columns in line with the contract.

Tables get theirs when they are made and when they get a column; this is for those that were there before the contract
said so. It changes no row, and runs concurrently with every writer. Settings come from
GAMELAKE_* variables (docs/settings.md).
"""

from functools import partial

from gamelake.command import command_parser
from gamelake.contract.games import GamesContract
from gamelake.delta.comments import CommentsOf, describe
from gamelake.delta.listing import table_paths
from gamelake.delta.tables import open_table
from gamelake.layers.comments import EventComments
from gamelake.model.logs import event_logger
from gamelake.objects.settings import TableSettings
from gamelake.objects.store import Store
from gamelake.program import OK, run
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.runner import GoldTables
from gamelake.serving.kpis import tables as kpi

log = event_logger("describe_tables")


def main() -> int:
    """Describe each table once."""
    command_parser(__doc__).parse_args()
    settings = TableSettings.from_env()
    store = Store(settings.lakehouse.location)
    comments = _comments(load_gold(settings.games_file), store)
    for table in table_paths(store):
        if describe(store, table, comments(table), partial(open_table, store.location, table)):
            log.info("table_described", table=table)
    return OK


def _comments(contract: GamesContract, store: Store) -> CommentsOf:
    of_gold = {each.table: each.comments for each in GoldTables(store, contract).now()}
    of_gold |= {table.path: table.comments for table in kpi.ALL}
    of_events = EventComments(contract, store)
    return lambda table: of_gold.get(table) or of_events(table)


if __name__ == "__main__":
    run(main)
