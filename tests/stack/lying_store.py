"""A little S3 store that ignores `If-None-Match`, as stores did before conditional writes."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class _LyingStore(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}


class _Handler(BaseHTTPRequestHandler):
    server: _LyingStore

    def do_PUT(self) -> None:
        self.server.objects[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(HTTPStatus.OK, b"")

    def do_GET(self) -> None:
        content = self.server.objects.get(self.path)
        if content is None:
            self._answer(HTTPStatus.NOT_FOUND, b"")
        else:
            self._answer(HTTPStatus.OK, content)

    def _answer(self, status: HTTPStatus, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", '"same"')
        self.send_header("Last-Modified", "Sat, 21 Nov 2026 12:00:00 GMT")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 # the base class has named it
        """Say nothing: the test does."""


@contextmanager
def lying_store() -> Iterator[str]:
    """The address of such a store, for as long as the block lasts."""
    server = _LyingStore()
    thread = Thread(target=server.serve_forever, name="lying-store")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
