"""Runs the catalog service until SIGTERM, or once: `python -m services.catalog [--once]`."""

import sys
from collections.abc import Sequence
from threading import Event, Thread

from prometheus_client import CollectorRegistry

from gamelake.command import command_parser
from gamelake.model.errors import SettingsError
from gamelake.objects.store import Store
from gamelake.observability.metrics.endpoint import Heartbeat, MetricsServer, registry_of_process
from gamelake.program import FAILED, OK, leave_pandas_out, run, stop_event
from services.catalog.metrics import CatalogMetrics
from services.catalog.registration import Registrar, Registrations
from services.catalog.runs import CatalogLoop, CatalogSteps, RunIntervals
from services.catalog.settings import CatalogSettings
from services.catalog.table_statistics import LogReader, StatisticsTracker
from services.catalog.tables import TableFinder
from services.catalog.trino import TrinoCatalog, TrinoViews
from services.catalog.views import ViewFiles, ViewSync

_POLL_SECONDS = 1.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until stopped; with `--once` do one run, 0 if it had no errors."""
    parser = command_parser(__doc__)
    parser.add_argument("--once", action="store_true", help="do one run and exit")
    is_once = parser.parse_args(arguments).once
    leave_pandas_out()
    settings = CatalogSettings.from_env()
    registry = registry_of_process()
    runs = _runs(settings, registry)
    if is_once:
        return FAILED if runs.once() else OK
    stop = stop_event()
    _serve(settings, registry)
    return _run_until_stopped(runs, stop, Heartbeat(settings.telemetry.heartbeat_file))


def _runs(settings: CatalogSettings, registry: CollectorRegistry) -> CatalogLoop:
    store = Store(settings.lakehouse)
    registrations = Registrations(store, Store(settings.metastore) if settings.metastore else None)
    registrar = Registrar(settings.lakehouse, TrinoCatalog(settings.trino), registrations)
    statistics = StatisticsTracker(LogReader(settings.lakehouse), on_replaced=registrar.reload_log)
    return CatalogLoop(
        CatalogSteps(TableFinder(store), registrar, statistics, _views(settings, store)),
        CatalogMetrics(registry),
        RunIntervals(settings.interval, settings.measure_interval),
    )


def _views(settings: CatalogSettings, store: Store) -> ViewSync | None:
    if settings.views is None:
        return None
    files = ViewFiles(settings.views.folder, settings.views.games_file)
    return ViewSync(files, TrinoViews(settings.views.trino), store)


def _serve(settings: CatalogSettings, registry: CollectorRegistry) -> None:
    try:
        MetricsServer(registry, settings.telemetry).start()
    except OSError as error:
        address = f"{settings.telemetry.metrics_host}:{settings.telemetry.metrics_port}"
        raise SettingsError(f"the metrics can't be served at {address}: {error}") from error


def _run_until_stopped(runs: CatalogLoop, stop: Event, heartbeat: Heartbeat) -> int:
    # Not in the main thread: a client that waits minutes for an unavailable store must not delay SIGTERM.
    worker = Thread(target=runs.run, args=(stop, heartbeat), name="runs", daemon=True)
    worker.start()
    while not stop.wait(_POLL_SECONDS):
        if not worker.is_alive():
            return FAILED
    return OK


if __name__ == "__main__":
    run(lambda: main(sys.argv[1:]))
