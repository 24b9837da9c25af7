"""The portal's server: HTTP/1.1, by TLS only for certificates of the authority, whose name the application gets."""

from functools import partial
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

from gamelake.http_server import HttpHandler, HttpServer
from services.portal.app import PortalApp
from services.portal.settings import PortalSettings


class PortalServer(HttpServer):
    """Serves the application.

    Raises:
        OSError: the address can't be listened on.
        SettingsError: the certificate can't be read.
    """

    def __init__(self, settings: PortalSettings, app: PortalApp) -> None:
        super().__init__((settings.host, settings.port), partial(_Handler, app), settings.tls)


class _Handler(HttpHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, app: PortalApp, *connection: object) -> None:
        self._app = app
        super().__init__(*connection)  # type: ignore[arg-type]  # the server's own words, handed on

    def _respond(self) -> None:
        try:
            address = urlsplit(self.path)
            path = unquote(address.path)
        except ValueError:
            self.send_error(HTTPStatus.BAD_REQUEST)
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        response = self._app.respond(self.command, path, headers, self.client, address.query)
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
