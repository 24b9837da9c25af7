"""Serves until SIGTERM or Ctrl-C: `python -m services.portal`."""

import argparse

from granian import Granian
from granian.constants import HTTPModes, Interfaces, Loops, SSLProtocols
from granian.http import HTTP1Settings

from gamelake.observability.faults import load_faults
from gamelake.program import OK, run
from gamelake.serving.sql.questions import load_questions
from services.portal.settings import PortalSettings

_HEADER_MILLISECONDS = 10_000
# By default the server's lines go to stdout in a form of their own.
_TO_OUR_LOGS = {"loggers": {"_granian": {"handlers": [], "propagate": True}}}


def main() -> int:
    """Serve until stopped; gives the exit code.

    Raises:
        GamelakeError: a setting, or the file of a question or of the faults, has to be corrected first.
    """
    argparse.ArgumentParser(prog="python -m services.portal", description=__doc__).parse_args()
    settings = PortalSettings.from_env()
    load_questions(settings.sql / "questions")
    if settings.faults is not None:
        load_faults(settings.faults)
    certificate = None if settings.tls is None else settings.tls.certificate
    Granian(
        "services.portal.process:create",
        address=settings.host,
        port=settings.port,
        interface=Interfaces.RSGI,
        workers=1,
        loop=Loops.uvloop,
        http=HTTPModes.http1,
        websockets=False,
        http1_settings=HTTP1Settings(header_read_timeout=_HEADER_MILLISECONDS),
        respawn_failed_workers=True,
        factory=True,
        log_access=False,
        log_dictconfig=_TO_OUR_LOGS,
        ssl_cert=certificate,
        ssl_key=certificate,
        ssl_ca=None if settings.tls is None else settings.tls.clients,
        ssl_client_verify=settings.tls is not None,
        ssl_protocol_min=SSLProtocols.tls12,
    ).serve()
    return OK


if __name__ == "__main__":
    run(main)
