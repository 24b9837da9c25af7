"""The HTTP server of the receiver: POST /alerts writes a notification to the file, GET /healthz checks health."""

import os
import threading
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO

from gamelake.http_server import HttpHandler, HttpServer
from gamelake.model.logs import event_logger
from services.alert_receiver.notification import MalformedNotificationError, alert_lines
from services.alert_receiver.settings import ReceiverSettings

log = event_logger(__name__)

# A notification has the alerts of one group, a thousand at most (`max_alerts`), which are about a megabyte.
MOST_BYTES = 2 * 1024 * 1024
# How long a notification waits for the one before it; Alertmanager sends it again.
_WAIT_SECONDS = 5.0
# Years of a healthy platform; an alert that fires is a line of about 700 bytes at each repetition.
_MOST_FILE_BYTES = 64 * 1024 * 1024


class AlertLog:
    """A file that lines are appended to, by any number of threads of one process.

    A file that would grow beyond `most_bytes` is renamed first, with `.1` at its end: there are at most two files.
    """

    def __init__(self, file: Path, most_bytes: int = _MOST_FILE_BYTES) -> None:
        self._file = file
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        file.parent.mkdir(parents=True, exist_ok=True)

    def append(self, lines: Iterable[str]) -> None:
        """Append lines and flush them to the disk; if it raises, none of them is in the file.

        Raises:
            OSError: the disk is full or broken.
        """
        text = bytearray()
        for line in lines:
            text += f"{line}\n".encode()
        with self._lock, self._opened(len(text)) as alert_log:
            size = alert_log.tell()
            try:
                alert_log.write(self._line_break(size))
                alert_log.write(text)
                alert_log.flush()
                os.fsync(alert_log.fileno())
            except OSError:
                alert_log.truncate(size)
                raise

    def _opened(self, more: int) -> BinaryIO:
        if self._file.exists() and self._file.stat().st_size + more > self._most_bytes:
            self._file.replace(self._file.with_name(f"{self._file.name}.1"))
        return self._file.open("ab")

    def _line_break(self, size: int) -> bytes:
        """A line break, if a killed process has left an incomplete line at the end."""
        if not size:
            return b""
        with self._file.open("rb") as alert_log:
            alert_log.seek(size - 1)
            return b"" if alert_log.read(1) == b"\n" else b"\n"


class Receiver(HttpServer):
    """The server; when it is closed, it first finishes notifications that are being written."""

    daemon_threads = False

    def __init__(self, settings: ReceiverSettings) -> None:
        self.turn = threading.Lock()
        handler = partial(_Handler, AlertLog(settings.file))
        super().__init__((settings.host, settings.port), handler, settings.tls, clients=settings.clients)


class _Handler(HttpHandler):
    server: Receiver

    def __init__(self, alert_log: AlertLog, *connection: object) -> None:
        self._alert_log = alert_log
        super().__init__(*connection)  # type: ignore[arg-type]  # the server's own words, handed on

    def do_GET(self) -> None:  # noqa: N802 # the base class's
        found = self.path == "/healthz"
        self._answer(HTTPStatus.OK if found else HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:  # noqa: N802 # as above
        self._answer(self._received() if self.path == "/alerts" else HTTPStatus.NOT_FOUND)

    def _received(self) -> HTTPStatus:
        """Append the notification; Alertmanager retries after a 5xx response only."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            return HTTPStatus.LENGTH_REQUIRED
        if int(length) > MOST_BYTES:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        # One at a time: together they would take more memory than the container has.
        if not self.server.turn.acquire(timeout=_WAIT_SECONDS):
            return HTTPStatus.SERVICE_UNAVAILABLE
        try:
            lines = alert_lines(self.rfile.read(int(length)), datetime.now(UTC))
            self._alert_log.append(line.to_json() for line in lines)
        except MalformedNotificationError as error:
            log.warning("notification_malformed", error=error, action="responds with 400")
            return HTTPStatus.BAD_REQUEST
        except OSError as error:
            log.error("notification_not_written", error=error, action="responds with 500; Alertmanager sends it again")  # noqa: TRY400
            return HTTPStatus.INTERNAL_SERVER_ERROR
        finally:
            self.server.turn.release()
        return HTTPStatus.OK

    def _answer(self, status: HTTPStatus) -> None:
        body = f"{status.phrase}\n".encode("ascii")
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        # An unread body would be parsed as the next request.
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
