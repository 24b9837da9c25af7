"""Makes the tables of exchange rates, sales reports and acquisition cost, so that views over them exist at once."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from gamelake.model.logs import event_logger
from gamelake.objects.store import Store
from gamelake.serving.money import acquisition_cost, store_reports
from gamelake.serving.money.imported import create_table
from gamelake.serving.money.rates import import_shipped

log = event_logger(__name__)


def prepare_money(store: Store, rates_file: Path) -> None:
    """Create the tables unless they exist; a failure stops no other table.

    Args:
        store: the lakehouse.
        rates_file: the exchange rates of a new lakehouse.
    """
    steps: list[Callable[[], None]] = [
        partial(import_shipped, store, rates_file),
        *(partial(create_table, store, each.TABLE) for each in (store_reports, acquisition_cost)),
    ]
    for step in steps:
        try:
            step()
        except Exception as error:
            log.exception(
                "money_tables_not_made", error=f"{type(error).__name__}: {error}", action="the next start tries again"
            )
