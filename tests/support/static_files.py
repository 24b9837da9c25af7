"""Serves the files of a folder over HTTP to a browser on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from tools.embedded.ports import HOST


class _Files(SimpleHTTPRequestHandler):
    """The files, without a log."""

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(directory: Path) -> Iterator[str]:
    """Serve the files until the block ends. Yields the address, which ends with a slash."""
    with ThreadingHTTPServer((HOST, 0), partial(_Files, directory=directory)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{HOST}:{server.server_port}/"
        server.shutdown()
