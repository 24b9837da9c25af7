"""Serves a directory until SIGTERM or Ctrl-C: `python -m services.data_docs DIRECTORY`."""

from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

from gamelake.command import command_parser
from gamelake.http_server import HttpHandler, HttpServer
from gamelake.model.errors import SettingsError
from gamelake.model.logs import event_logger
from gamelake.model.options import EndpointTls
from gamelake.program import OK, run, stop_event

log = event_logger("data_docs")


class _Handler(HttpHandler, SimpleHTTPRequestHandler):
    """Serves the files of a directory."""


def main() -> int:
    """Serve until stopped. Return the exit code.

    Raises:
        SettingsError: the port is in use, or a file can't be read.
    """
    parser = command_parser(__doc__)
    parser.add_argument("directory", type=Path, help="the files to serve")
    parser.add_argument("--port", type=int, default=8000, help="the port to listen on (default: %(default)s)")
    parser.add_argument("--certificate", type=Path, required=True, help="the server's private key and certificate, PEM")
    parser.add_argument("--clients", type=Path, required=True, help="the authorities of the clients' certificates, PEM")
    parser.add_argument(
        "--admit",
        nargs="+",
        default=["operator", "data-docs"],
        metavar="NAME",
        help="the names in the clients' certificates that open the pages; the default is an operator's, and the "
        "server's own for its health check",
    )
    arguments = parser.parse_args()
    stop = stop_event()
    try:
        tls = EndpointTls(certificate=arguments.certificate, clients=arguments.clients)
        handler = partial(_Handler, directory=str(arguments.directory))
        with HttpServer(("", arguments.port), handler, tls, clients=arguments.admit) as server:
            log.info("data_docs_served", port=server.server_port, directory=arguments.directory)
            while not stop.is_set():
                server.handle_request()
    except OSError as error:
        raise SettingsError(f"the Data Docs can't be served: {error}") from error
    return OK


if __name__ == "__main__":
    run(main)
