"""An HTTP server with a thread for each connection. Over TLS it serves a renewed certificate without a restart."""

import socket
import ssl
import sys
from collections.abc import Callable, Collection
from datetime import datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from gamelake.model.credentials import WatchedFile
from gamelake.model.logs import event_logger
from gamelake.model.options import EndpointTls

log = event_logger(__name__)


class HttpServer(ThreadingHTTPServer):
    """Listens on an address and passes each connection to a handler, over TLS to clients of the authority only.

    Args:
        address: host and port; an empty host is every address.
        handler: makes an `HttpHandler` for each connection.
        tls: None: plain HTTP.
        clients: with TLS, the names in clients' certificates that may send requests; None: all of the authority's.
        shares_port: other processes of the user may listen on the port, too; each connection reaches one of them.

    Raises:
        OSError: the address can't be listened on.
        SettingsError: the certificate can't be read.
    """

    daemon_threads = True
    # The number of connections that may wait for their threads; by default five.
    request_queue_size = 128
    # Seconds that `handle_request` waits for a connection.
    timeout = 0.5

    def __init__(
        self,
        address: tuple[str, int],
        handler: Callable[..., BaseHTTPRequestHandler],
        tls: EndpointTls | None = None,
        *,
        clients: Collection[str] | None = None,
        shares_port: bool = False,
    ) -> None:
        host, port = address
        family = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        self.address_family, self.allow_reuse_port = family, shares_port
        self._tls = WatchedFile(tls.certificate, lambda _: tls.load(), "certificate") if tls else None
        self._clients = clients
        super().__init__(address, handler)

    @property
    def certificate_expires(self) -> datetime | None:
        """The time at which the served certificate expires; None without TLS."""
        return self._tls.now.expires if self._tls else None

    def get_request(self) -> tuple[socket.socket, Any]:
        """Return a connection; its thread does the handshake, with the first read.

        A client that sends nothing would otherwise block all others.
        """
        connection, client = super().get_request()
        if self._tls is not None:
            self._tls.refresh()
            connection = self._tls.now.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, client

    def is_admitted(self, client: str) -> bool:
        """Return True if the client of this name may send requests."""
        return self._tls is None or self._clients is None or client in self._clients

    def handle_error(self, request: object, client_address: object) -> None:
        """Log a line, not a traceback, for a client without a certificate or one that closes the connection."""
        log.warning("connection_failed", client=client_address, error=repr(sys.exc_info()[1]))


class HttpHandler(BaseHTTPRequestHandler):
    """Reads requests of clients that the server admits; the others get 403."""

    server: HttpServer
    # Seconds after which a silent client is disconnected: it must not keep a thread, nor the end of the process.
    timeout = 10

    @property
    def client(self) -> str:
        """The common name in the client's certificate; empty without TLS."""
        if not isinstance(self.connection, ssl.SSLSocket):
            return ""
        subject: Any = (self.connection.getpeercert() or {}).get("subject", ())
        return next((str(value) for part in subject for name, value in part if name == "commonName"), "")

    def parse_request(self) -> bool:
        """Return True if the request can be processed; otherwise the response was sent."""
        if not super().parse_request():
            return False
        if not self.server.is_admitted(self.client):
            self.send_error(HTTPStatus.FORBIDDEN)
            return False
        return True

    def version_string(self) -> str:
        """Name no program and version."""
        return "gamelake"

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Do not log requests."""

    def log_error(self, format: str, *words: object) -> None:  # noqa: A002 # the base class's
        """Log a request that could not be read."""
        log.warning("request_failed", error=format % words)
