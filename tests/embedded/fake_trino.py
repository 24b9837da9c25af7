"""A server that speaks Trino's protocol and knows no SQL: a test says what it answers, and reads what was asked."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_STATS = {"state": "FINISHED", "nodes": 1, "totalSplits": 0, "completedSplits": 0, "rootStage": None}
_LENGTHS = {"varchar": [{"kind": "LONG", "value": 2**31 - 1}]}


@dataclass(frozen=True, slots=True)
class Asked:
    """A statement, with the headers that say who asks."""

    sql: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FakeAnswer:
    """An answer: rows, or an error by its name and message."""

    columns: tuple[tuple[str, str], ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    error: tuple[str, str] | None = None

    def document(self, number: int) -> dict[str, object]:
        """The answer as Trino writes it."""
        document: dict[str, object] = {"id": f"query_{number}", "infoUri": "http://localhost/", "stats": _STATS}
        if self.error is not None:
            name, message = self.error
            failure = {"message": message, "errorCode": 1, "errorName": name, "errorType": "USER_ERROR"}
            return document | {"error": failure}
        columns = [
            {"name": name, "type": kind, "typeSignature": {"rawType": kind, "arguments": _LENGTHS.get(kind, [])}}
            for name, kind in self.columns
        ]
        return document | {"columns": columns, "data": [list(row) for row in self.rows]}


@dataclass(slots=True)
class FakeTrino:
    """The running server."""

    url: str
    answer: Callable[[str], FakeAnswer]
    asked: list[Asked] = field(default_factory=list)


@contextmanager
def fake_trino(answer: Callable[[str], FakeAnswer]) -> Iterator[FakeTrino]:
    """Serve on a free port until the block ends."""
    trino = FakeTrino("", answer)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sql = self.rfile.read(int(self.headers["Content-Length"])).decode()
            trino.asked.append(Asked(sql, dict(self.headers.items())))
            body = json.dumps(trino.answer(sql).document(len(trino.asked))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 # the base class's
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    trino.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield trino
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
