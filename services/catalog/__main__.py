"""Runs the catalog service until SIGTERM, or one round of it: `python -m services.catalog [--once]`."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from threading import Event, Thread

from prometheus_client import CollectorRegistry, start_http_server

from gamelake.model.errors import SettingsError
from gamelake.program import FAILED, OK, run, stop_event
from gamelake.storage.store import Store
from services.catalog.metrics import CatalogMetrics
from services.catalog.registration import Registrar, Registrations
from services.catalog.runs import Pace, Rounds, Steps
from services.catalog.settings import CatalogSettings
from services.catalog.table_statistics import LogReader, Measuring
from services.catalog.tables import TableFinder
from services.catalog.trino import TrinoCatalog, TrinoViews
from services.catalog.views import ViewFiles, ViewKeeper

_SECONDS_BETWEEN_LOOKS = 1.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Follow the lakehouse; with `--once`, 0 if every table is served."""
    parser = argparse.ArgumentParser(prog="python -m services.catalog", description=__doc__)
    parser.add_argument("--once", action="store_true", help="do one round and end")
    is_once = parser.parse_args(arguments).once
    settings = CatalogSettings.from_env()
    registry = CollectorRegistry()
    rounds = _rounds(settings, registry)
    if is_once:
        return FAILED if rounds.once() else OK
    stop = stop_event()
    _serve(settings, registry)
    return _follow(rounds, stop)


def _rounds(settings: CatalogSettings, registry: CollectorRegistry) -> Rounds:
    store = Store(settings.lakehouse)
    registrations = Registrations(store, Store(settings.metastore) if settings.metastore else None)
    registrar = Registrar(settings.lakehouse, TrinoCatalog(settings.trino), registrations)
    measuring = Measuring(LogReader(settings.lakehouse), on_replaced=registrar.read_anew)
    return Rounds(
        Steps(TableFinder(store), registrar, measuring, _views(settings, store)),
        CatalogMetrics(registry),
        Pace(settings.interval, settings.measure_interval),
    )


def _views(settings: CatalogSettings, store: Store) -> ViewKeeper | None:
    if settings.views is None:
        return None
    files = ViewFiles(settings.views.folder, settings.views.games_file)
    return ViewKeeper(files, TrinoViews(replace(settings.trino, user=settings.views.user)), store)


def _serve(settings: CatalogSettings, registry: CollectorRegistry) -> None:
    try:
        start_http_server(settings.metrics_port, settings.metrics_host, registry)
    except OSError as error:
        address = f"{settings.metrics_host}:{settings.metrics_port}"
        raise SettingsError(f"the metrics can't be served at {address}: {error}") from error


def _follow(rounds: Rounds, stop: Event) -> int:
    # Beside the main thread: a client that waits minutes for a store that is away must not hold up SIGTERM.
    worker = Thread(target=rounds.run, args=(stop,), name="rounds", daemon=True)
    worker.start()
    while not stop.wait(_SECONDS_BETWEEN_LOOKS):
        if not worker.is_alive():
            return FAILED
    return OK


if __name__ == "__main__":
    run(lambda: main(sys.argv[1:]))
