"""Serves until SIGTERM or Ctrl-C: `python -m services.gateway`."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

from gamelake.command import command_parser
from gamelake.contract.games import load_games
from gamelake.model.credentials import WatchedFile
from gamelake.program import OK, run
from services.gateway.authentication import read_keys
from services.gateway.settings import GatewaySettings, read_certificate

_HEADER_MILLISECONDS = 10_000
# How far a connection may send ahead of the bytes that were read; the default is 408 KiB. With 64 KiB, 512 connections
# that send large bodies take 70 MiB more, at the same rate.
_BUFFER_BYTES = 16 * 1024
_CERTIFICATE_SECONDS = 2.0
# How long a process that is replaced serves next to its successor, which needs seconds to start on a busy machine.
_OVERLAP_SECONDS = 15.0
# By default the server's lines go to stdout in a form of their own.
_TO_OUR_LOGS = {"loggers": {"_granian": {"handlers": [], "propagate": True}}}


def main() -> int:
    """Serve until stopped. Return the exit code.

    Raises:
        StartupError: a setting has to be corrected first.
    """
    command_parser(__doc__).parse_args()
    settings = GatewaySettings.from_env()
    settings.check_memory()
    read_keys(settings.keys_file, load_games(settings.contracts / "games.yaml"))
    # The processes share metrics and quotas in these files; the first variable is read when the library is imported.
    with tempfile.TemporaryDirectory(prefix="gamelake-ingest-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        if settings.quota_directory is None:
            os.environ["INGEST_QUOTA_DIRECTORY"] = folder
        return _serve(settings)


def _serve(settings: GatewaySettings) -> int:
    from granian import Granian  # noqa: PLC0415 # after the variable above
    from granian.constants import HTTPModes, Interfaces, Loops, SSLProtocols  # noqa: PLC0415
    from granian.http import HTTP1Settings  # noqa: PLC0415

    server = Granian(
        "services.gateway.process:create",
        address=settings.host,
        port=settings.port,
        interface=Interfaces.RSGI,
        workers=settings.processes,
        loop=Loops.uvloop,
        # No timeout applies while the server detects the client's HTTP version, nor in version 2 (decision 0035).
        http=HTTPModes.http1,
        websockets=False,
        http1_settings=HTTP1Settings(header_read_timeout=_HEADER_MILLISECONDS, max_buffer_size=_BUFFER_BYTES),
        respawn_failed_workers=True,
        respawn_interval=_OVERLAP_SECONDS,
        factory=True,
        log_access=False,
        log_dictconfig=_TO_OUR_LOGS,
        ssl_cert=settings.certificate_file,
        ssl_key=settings.certificate_file,
        # Devices with Android before version 10 have no newer one.
        ssl_protocol_min=SSLProtocols.tls12,
    )
    ended = Event()
    if settings.certificate_file is not None:
        # As SIGHUP does: each process is replaced by one that reads the certificate, and ends its requests first.
        arguments = (settings.certificate_file, server.signal_handler_reload, ended)
        Thread(target=_watch_certificate, args=arguments, name="certificate", daemon=True).start()
    server.serve()
    ended.set()
    return OK


def _watch_certificate(file: Path, on_renewed: Callable[[], None], ended: Event) -> None:
    """Call a function each time that the file has another certificate, until the event is set."""
    certificate = WatchedFile(file, read_certificate, "certificate")
    while not ended.wait(_CERTIFICATE_SECONDS):
        before = certificate.now
        certificate.refresh()
        if certificate.now != before:
            on_renewed()


if __name__ == "__main__":
    run(main)
