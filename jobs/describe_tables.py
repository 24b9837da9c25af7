"""Brings the comments of all tables and columns in line with the contract.

Tables get theirs when they are made and when they get a column; this is for those that were there before the contract
said so. It changes no row, and runs concurrently with every writer. Settings come from
GAMELAKE_* variables (docs/settings.md).
"""

import argparse
from functools import partial

from gamelake.layers.comments import EventComments
from gamelake.model.games import GamesContract, load_games
from gamelake.model.logs import event_logger
from gamelake.program import OK, run
from gamelake.serving.gold.runner import GoldTables
from gamelake.serving.kpis import definitions
from gamelake.serving.kpis.day_tables import kpi_comments
from gamelake.storage.comments import CommentsOf
from gamelake.storage.listing import table_paths
from gamelake.storage.settings import TableSettings
from gamelake.storage.store import Store
from gamelake.storage.tables import describe, open_table

log = event_logger("describe_tables")


def main() -> int:
    """Describe each table once."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    settings = TableSettings.from_env()
    store = Store(settings.lakehouse.location)
    comments = _comments(load_games(settings.games_file), store)
    for table in table_paths(store):
        if describe(store, table, comments(table), partial(open_table, store.location, table)):
            log.info("table_described", table=table)
    return OK


def _comments(contract: GamesContract, store: Store) -> CommentsOf:
    of_gold = {each.table: each.comments for each in GoldTables(store, contract).now()}
    of_gold |= {table.path: kpi_comments(table) for table in definitions.ALL}
    of_events = EventComments(contract, store)
    return lambda table: of_gold.get(table) or of_events(table)


if __name__ == "__main__":
    run(main)
