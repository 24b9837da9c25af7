"""Serves a directory until SIGTERM or Ctrl-C: `python -m services.data_docs DIRECTORY`."""

import argparse
import socket
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from gamelake.model.errors import SettingsError
from gamelake.model.logs import event_logger
from gamelake.model.options import EndpointTls
from gamelake.program import OK, run, stop_event

log = event_logger("data_docs")


class _Handler(SimpleHTTPRequestHandler):
    # A client that sends nothing must not keep a thread.
    timeout = 10

    def log_message(self, format: str, *words: object) -> None:  # noqa: A002 # the base class's
        """Do not log requests."""


class _Server(ThreadingHTTPServer):
    # Seconds that `handle_request` waits for a connection.
    timeout = 0.5

    def __init__(self, directory: Path, port: int, tls: EndpointTls) -> None:
        super().__init__(("", port), partial(_Handler, directory=str(directory)))
        self._context = tls.context()

    def get_request(self) -> tuple[socket.socket, Any]:
        """A connection; its thread does the handshake, with the first read."""
        connection, client = super().get_request()
        return self._context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), client

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that has no certificate, or closes the connection."""


def main() -> int:
    """Serve until stopped; gives the exit code.

    Raises:
        SettingsError: the port is in use, or a file can't be read.
    """
    parser = argparse.ArgumentParser(prog="python -m services.data_docs", description=__doc__)
    parser.add_argument("directory", type=Path, help="the files to serve")
    parser.add_argument("--port", type=int, default=8000, help="the port to listen on (default: %(default)s)")
    parser.add_argument("--certificate", type=Path, required=True, help="the server's private key and certificate, PEM")
    parser.add_argument("--clients", type=Path, required=True, help="the authorities of the clients' certificates, PEM")
    arguments = parser.parse_args()
    stop = stop_event()
    try:
        tls = EndpointTls(certificate=arguments.certificate, clients=arguments.clients)
        with _Server(arguments.directory, arguments.port, tls) as server:
            log.info("data_docs_served", port=server.server_port, directory=arguments.directory)
            while not stop.is_set():
                server.handle_request()
    except OSError as error:
        raise SettingsError(f"the Data Docs can't be served: {error}") from error
    return OK


if __name__ == "__main__":
    run(main)
