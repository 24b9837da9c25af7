"""The switches for load and faults: what the portal asks of a program that may change the platform, over a Unix socket.

That program, `gamelake switchboard` or `make dev`, serves HTTP: `GET /switches`, `POST /faults/NAME/on`, `POST
/faults/NAME/off` and `POST /load/RATE`, each with `SwitchStates` as JSON, or with an error's sentence.
"""

import socket
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import msgspec

from gamelake.model.errors import TransientError

# Events per second of the simulated players, as a person chooses them.
LOADS = (0, 10, 50, 200, 1_000, 2_000)
_READ_SECONDS = 10.0
# Containers are started and stopped.
_CHANGE_SECONDS = 180.0


class SwitchboardUnavailableError(TransientError):
    """No program listens at the socket, or it does not respond."""


class SwitchingFailedError(TransientError):
    """The program could not switch it; says why."""


class SwitchStates(msgspec.Struct, frozen=True, kw_only=True):
    """The load and faults that are switched on.

    Attributes:
        load: events per second of the load; 0 without one.
        faults: the names of those that are on; None: this platform has no faults to switch on.
    """

    load: int
    faults: tuple[str, ...] | None = None


class SwitchError(msgspec.Struct, frozen=True):
    """The body of a response that reports an error."""

    error: str


class Switchboard:
    """The client of the program at a socket.

    Args:
        path: the socket; the program need not run.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def states(self) -> SwitchStates:
        """Return the load and faults that are switched on.

        Raises:
            SwitchboardUnavailableError: the program does not run, or does not respond.
            SwitchingFailedError: it can't read the states.
        """
        return self._request("GET", "/switches", _READ_SECONDS)

    def switch(self, fault: str, *, on: bool) -> None:
        """Switch a fault on or off; one that is so already stays.

        Raises:
            SwitchboardUnavailableError: as of `states`.
            SwitchingFailedError: it could not be switched.
        """
        self._request("POST", f"/faults/{fault}/{'on' if on else 'off'}", _CHANGE_SECONDS)

    def set_load(self, rate: int) -> None:
        """Replace the load by one of `rate` events per second; 0 ends it.

        Raises:
            SwitchboardUnavailableError: as of `states`.
            SwitchingFailedError: it could not be set.
        """
        self._request("POST", f"/load/{rate}", _CHANGE_SECONDS)

    def _request(self, method: str, path: str, seconds: float) -> SwitchStates:
        connection = _UnixConnection(self._path, seconds)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            body = response.read()
        except (OSError, HTTPException) as error:
            raise SwitchboardUnavailableError(f"no program responds at {self._path}: {error}") from error
        finally:
            connection.close()
        try:
            if response.status != HTTPStatus.OK:
                raise SwitchingFailedError(msgspec.json.decode(body, type=SwitchError).error)
            return msgspec.json.decode(body, type=SwitchStates)
        except msgspec.MsgspecError as error:
            raise SwitchboardUnavailableError(f"the server at {self._path} is not a switchboard: {error}") from error


class _UnixConnection(HTTPConnection):
    def __init__(self, path: Path, seconds: float) -> None:
        super().__init__("localhost", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))
