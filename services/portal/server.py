"""The portal's servers: by TLS for certificates of the authority, and in the clear for browsers that have a session."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from threading import Thread
from urllib.parse import unquote, urlsplit

from gamelake.http_server import HttpHandler, HttpServer
from services.portal.app import PortalApp
from services.portal.settings import PortalSettings


class PortalServer(HttpServer):
    """Serves the application to holders of a certificate, or, without TLS, to everyone who reaches the port.

    Raises:
        OSError: the address can't be listened on.
        SettingsError: the certificate can't be read.
    """

    def __init__(self, settings: PortalSettings, app: PortalApp) -> None:
        handler = partial(_Handler, app, False)
        super().__init__((settings.host, settings.port), handler, settings.tls)


@contextmanager
def served_to_browsers(settings: PortalSettings, app: PortalApp) -> Iterator[None]:
    """Serve the application at the port for browsers, if there is one, until the end of the `with` block.

    Raises:
        OSError: the address can't be listened on.
    """
    if settings.browser_port is None:
        yield
        return
    handler = partial(_Handler, app, True)
    with HttpServer((settings.host, settings.browser_port), handler) as server:
        thread = Thread(target=server.serve_forever, name="portal for browsers", daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


class _Handler(HttpHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, app: PortalApp, is_of_browser: bool, *connection: object) -> None:
        self._app, self._is_of_browser = app, is_of_browser
        super().__init__(*connection)  # type: ignore[arg-type]  # the server's own words, handed on

    def _respond(self) -> None:
        try:
            address = urlsplit(self.path)
            path = unquote(address.path)
        except ValueError:
            self.send_error(HTTPStatus.BAD_REQUEST)
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        client = None if self._is_of_browser else self.client
        response = self._app.respond(self.command, path, headers, client, address.query)
        # A body is not read, and would be parsed as the next request.
        if "content-length" in headers or "transfer-encoding" in headers:
            self.close_connection = True
        self.send_response(response.status)
        for name, value in response.headers():
            self.send_header(name, value)
        self.send_header("content-length", str(len(response.content)))
        if self.close_connection:
            self.send_header("connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.content)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _respond  # noqa: N815 # the base class's
