"""Only the registry's own error code says that it lacks a schema: a proxy's page of status 404 is an outage."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from gamelake.model.errors import RegistryUnavailableError, UnknownSchemaError
from gamelake.schemas.compiler import ROOT_FILE
from gamelake.schemas.registry import SchemaRegistry
from tools.embedded.registry import EmbeddedRegistry


@contextmanager
def answering(status: int, content: bytes, senders: list[object] | None = None) -> Iterator[SchemaRegistry]:
    """A registry behind a proxy that gives every question one answer; adds the sender of each question to a list."""
    asked_by = [] if senders is None else senders

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # keeps connections open

        def do_GET(self) -> None:
            asked_by.append(self.client_address)
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 # the base class has named it
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield SchemaRegistry(f"http://127.0.0.1:{server.server_address[1]}")
    finally:
        server.shutdown()
        server.server_close()


def ask_all(registry: SchemaRegistry, error: type[Exception]) -> None:
    """Ask the three questions, each of which must raise an error."""
    for ask in (lambda: registry.source(1), lambda: registry.versions(1), lambda: registry.newest("events-value")):
        with pytest.raises(error) as raised:
            ask()
        assert type(raised.value) is error


@pytest.mark.parametrize(
    ("status", "content"),
    [
        (404, b"<html><body>default backend - 404</body></html>"),
        (404, b""),
        (404, b"{}"),
        (404, b"[]"),
        (404, json.dumps({"error_code": 404, "message": "HTTP 404 Not Found"}).encode()),
        (403, json.dumps({"error_code": 40301, "message": "denied"}).encode()),
        (502, b"Bad Gateway"),
        (200, b"<html>Log in</html>"),
        (200, b""),
        (200, b"7"),
    ],
)
def test_an_answer_that_is_not_the_registrys_own_is_an_outage(status: int, content: bytes) -> None:
    with answering(status, content) as registry:
        ask_all(registry, RegistryUnavailableError)


@pytest.mark.parametrize("code", [40401, 40402, 40403])
def test_the_registrys_own_code_says_that_there_is_no_such_schema(code: int) -> None:
    with answering(404, json.dumps({"error_code": code, "message": "not found"}).encode()) as registry:
        ask_all(registry, UnknownSchemaError)


def test_all_questions_of_a_process_share_a_connection_and_none_is_answered_from_memory() -> None:
    asked_by: list[object] = []
    newest = {"subject": "events-value", "version": 3, "id": 7, "schemaType": "PROTOBUF", "schema": "a"}
    with answering(200, json.dumps(newest).encode(), asked_by) as registry:
        url = registry._url  # noqa: SLF001 # where others ask too
        assert [SchemaRegistry(url).newest("events-value") for _ in range(5)] == [7] * 5
        assert [SchemaRegistry(url).source(7).texts for _ in range(5)] == [{ROOT_FILE: "a"}] * 5

    assert len(asked_by) == 10
    assert len(set(asked_by)) == 1


def test_the_real_registry_says_so_by_its_code(registry: EmbeddedRegistry) -> None:
    client = SchemaRegistry(registry.url)

    with pytest.raises(UnknownSchemaError):
        client.source(987_654)
    with pytest.raises(UnknownSchemaError):
        client.newest("no-such-subject-value")
