"""Serves until SIGTERM or Ctrl-C: `python -m services.gateway`."""

import argparse
import os
import tempfile

from gamelake.model.games import load_games
from gamelake.program import OK, run
from services.gateway.authentication import read_keys
from services.gateway.settings import GatewaySettings

_HEADER_MILLISECONDS = 10_000
# How far a connection may send ahead of what was read; the default is 408 KiB. With 64 KiB, 512 connections that send
# large bodies take 70 MiB more, at the same rate.
_BUFFER_BYTES = 16 * 1024
# By default the server's lines go to stdout in a form of their own.
_TO_OUR_LOGS = {"loggers": {"_granian": {"handlers": [], "propagate": True}}}


def main() -> int:
    """Serve until stopped; gives the exit code.

    Raises:
        StartupError: a setting has to be corrected first.
    """
    argparse.ArgumentParser(prog="python -m services.gateway", description=__doc__).parse_args()
    settings = GatewaySettings.from_env()
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
        # No timeout applies while the server detects the client's HTTP version, nor in version 2 (decision 0073).
        http=HTTPModes.http1,
        websockets=False,
        http1_settings=HTTP1Settings(header_read_timeout=_HEADER_MILLISECONDS, max_buffer_size=_BUFFER_BYTES),
        respawn_failed_workers=True,
        factory=True,
        log_access=False,
        log_dictconfig=_TO_OUR_LOGS,
        ssl_cert=settings.certificate_file,
        ssl_key=settings.certificate_file,
        # Devices with Android before version 10 have no newer one.
        ssl_protocol_min=SSLProtocols.tls12,
    )
    server.serve()
    return OK


if __name__ == "__main__":
    run(main)
