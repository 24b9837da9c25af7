"""Serves the switches for load and faults to the portal at a Unix socket, in a thread of its own.

The portal has no rights over containers or processes; it gets these switches and nothing else of the machine. The
protocol is that of `services/portal/switchboard.py`.
"""

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from threading import Lock, Thread
from typing import Protocol

import msgspec

from gamelake.model.errors import GamelakeError, StartupError
from services.portal.switchboard import LOADS, SwitchError, SwitchStates

_FAULT = re.compile(r"/faults/([a-z-]+)/(on|off)")
# The limit of a Unix socket's address on macOS; Linux has four more.
_LONGEST_PATH = 103
_LOAD = re.compile(r"/load/([0-9]+)")


class Switches(Protocol):
    """The things that can be switched on a platform."""

    def states(self) -> SwitchStates:
        """Return the load and faults that are on now."""

    def switch(self, fault: str, *, on: bool) -> None:
        """Switch a fault on or off."""

    def set_load(self, rate: int) -> None:
        """Replace the load by one of `rate` events per second; 0 ends it."""


@contextmanager
def switchboard(path: Path, switches: Switches) -> Iterator[None]:
    """Serve while the block lasts; one change at a time.

    Args:
        path: the socket; this makes its folder. The portal may run as another user, so any process that
            reaches the folder may connect; the folder's parent is this user's alone.
        switches: what is switched, from several threads.

    Raises:
        StartupError: another program serves at the socket, or its path is too long.
    """
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise StartupError(f"the path of the socket {path} is longer than {_LONGEST_PATH} bytes: move the repository")
    make_folder(path)
    _remove_unserved(path)
    with _Server(str(path), _Handler) as server:
        server.switches = switches
        path.chmod(0o666)
        thread = Thread(target=server.serve_forever, name="switchboard", daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
            path.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Make the folder of a socket. The portal's container has to find it; its parent is this user's alone."""
    path.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.mkdir(mode=0o755, exist_ok=True)


def _remove_unserved(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        try:
            other.connect(str(path))
        except OSError:
            # Left by a program that was killed.
            path.unlink(missing_ok=True)
        else:
            raise StartupError(f"another switchboard serves at {path}: end that one first")


class _Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True
    # A Unix socket refuses a client that has a timeout at once if this many wait to be accepted; by default 5.
    request_queue_size = 128
    switches: Switches

    def __init__(self, path: str, handler: "type[_Handler]") -> None:
        super().__init__(path, handler)
        self.changing = Lock()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # A client that sends nothing holds a thread no longer than this.
    timeout = 30
    server: _Server

    def do_GET(self) -> None:
        if self.path == "/switches":
            self._respond_with_states()
        else:
            self._respond(HTTPStatus.NOT_FOUND, SwitchError("there is no such page"))

    def do_POST(self) -> None:
        fault, load = _FAULT.fullmatch(self.path), _LOAD.fullmatch(self.path)
        try:
            with self.server.changing:
                if fault is not None:
                    self.server.switches.switch(fault[1], on=fault[2] == "on")
                elif load is not None and int(load[1]) in LOADS:
                    self.server.switches.set_load(int(load[1]))
                else:
                    self._respond(HTTPStatus.NOT_FOUND, SwitchError("there is no such switch"))
                    return
        except GamelakeError as error:
            self._respond(HTTPStatus.INTERNAL_SERVER_ERROR, SwitchError(str(error)))
        else:
            self._respond_with_states()

    def _respond_with_states(self) -> None:
        try:
            states = self.server.switches.states()
        except GamelakeError as error:
            self._respond(HTTPStatus.INTERNAL_SERVER_ERROR, SwitchError(str(error)))
        else:
            self._respond(HTTPStatus.OK, states)

    def _respond(self, status: HTTPStatus, body: SwitchStates | SwitchError) -> None:
        content = msgspec.json.encode(body)
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 # the base class's name
        """Log nothing: a client of a Unix socket has no address, which the base class would log."""
