"""Makes the tables of exchange rates and of stores' reports, so that views over them exist from the first start on."""

from pathlib import Path

from gamelake.model.logs import event_logger
from gamelake.objects.store import Store
from gamelake.serving.money.rates import import_shipped
from gamelake.serving.money.store_reports import create_table

log = event_logger(__name__)


def prepare_money(store: Store, rates_file: Path) -> None:
    """Create both tables unless they exist; a failure stops no other table.

    Args:
        store: the lakehouse.
        rates_file: the exchange rates of a new lakehouse.
    """
    try:
        import_shipped(store, rates_file)
        create_table(store)
    except Exception as error:
        log.exception(
            "money_tables_not_made", error=f"{type(error).__name__}: {error}", action="the next start tries again"
        )
