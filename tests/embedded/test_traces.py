"""Traces of some events, from the gateway to the commit, as an OTLP receiver gets them."""

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.embedded.gateway import Gateway, body_of, events
from tests.embedded.lakehouse import Lakehouse
from tools.embedded.ports import HOST, free_port

ONE_IN = 16
GATEWAY_SPANS = ["POST /v1/events", "prepare", "send"]
INGEST_SPANS = ["wait in Kafka", "read and write files", "commit"]


class OtlpReceiver:
    """A server that speaks OTLP by HTTP, and the spans that it got, by trace (hexadecimal), and their services."""

    def __init__(self) -> None:
        self.spans: defaultdict[str, list[Span]] = defaultdict(list)
        self.services: set[str] = set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.path == "/v1/traces"
                request = ExportTraceServiceRequest()
                request.ParseFromString(self.rfile.read(int(self.headers["content-length"])))
                receiver.take(request)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._server.server_port}"

    def take(self, request: ExportTraceServiceRequest) -> None:
        """Keep the spans of a request."""
        for resource in request.resource_spans:
            names = {each.key: each.value.string_value for each in resource.resource.attributes}
            self.services.add(names["service.name"])
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.spans[span.trace_id.hex()].append(span)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    opened = OtlpReceiver()
    yield opened
    opened.close()


def hex_of(event_id: object) -> str:
    """The id of an event's trace."""
    return uuid.UUID(str(event_id)).hex


def attributes_of(span: Span) -> dict[str, str | int]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def traced_lakehouse(
    tmp_path: Path, gateway: Gateway, lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> Lakehouse:
    """A lakehouse that is fed by the gateway, whose job exports traces to an endpoint."""
    # The exporter of a job in this process reads this process's variables.
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    settings = {"GAMELAKE_TRACE_ONE_IN": str(ONE_IN)}
    return replace(lakehouse, directory=tmp_path / "traced", topic=gateway.topic, settings=settings)


def test_one_event_in_sixteen_is_followed_from_its_request_to_the_commit(
    open_gateway: Callable[..., Gateway],
    lakehouse: Lakehouse,
    receiver: OtlpReceiver,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gateway = open_gateway(OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, GAMELAKE_TRACE_ONE_IN=str(ONE_IN))
    ours = traced_lakehouse(tmp_path, gateway, lakehouse, monkeypatch, receiver.url)
    sent = [*events(300), *events(1, event_id="00000000-0000-4000-8000-00000000000A"), *events(20)]
    chosen = {str(each["event_id"]) for each in sent if str(each["event_id"]).endswith("0")}
    assert len(chosen) > 5

    # As columns, and one by one.
    assert gateway.send(body_of(sent[:1])).result.accepted == 1
    assert gateway.send(body_of(sent[1:])).result.accepted == 320
    ours.ingest()
    gateway.process.stop()

    assert receiver.spans.keys() == {hex_of(each) for each in chosen}
    assert receiver.services == {"gamelake-gateway", "ingest_events"}
    rows = {row["event_id"]: row for row in ours.rows("silver/events").to_pylist()}
    for event in chosen:
        spans = {span.name: span for span in receiver.spans[hex_of(event)]}
        check_order(spans)
        assert attributes_of(spans["commit"]) == {
            "gamelake.game": rows[event]["game_name"],
            "gamelake.stream": "ingest_events",
            "gamelake.batch": 0,
            "messaging.system": "kafka",
            "messaging.destination.name": gateway.topic,
            "messaging.destination.partition.id": str(rows[event]["kafka_partition"]),
            "messaging.kafka.offset": rows[event]["kafka_offset"],
        }


def check_order(spans: dict[str, Span]) -> None:
    """The request is the parent of all others, and each of these begins when the one before it ends."""
    assert sorted(spans) == sorted(GATEWAY_SPANS + INGEST_SPANS)
    request, *parts = (spans[name] for name in GATEWAY_SPANS)
    waiting, working, committing = (spans[name] for name in INGEST_SPANS)
    assert request.parent_span_id == b""
    assert {span.parent_span_id for span in (*parts, waiting, working, committing)} == {request.span_id}
    assert len({span.span_id for span in spans.values()}) == len(spans)
    prepared, sent = parts
    assert request.start_time_unix_nano == prepared.start_time_unix_nano
    assert prepared.end_time_unix_nano == sent.start_time_unix_nano
    assert sent.end_time_unix_nano == request.end_time_unix_nano
    # Kafka cuts its times to milliseconds.
    assert request.start_time_unix_nano - 1_000_000 <= waiting.start_time_unix_nano <= request.end_time_unix_nano
    assert waiting.end_time_unix_nano == working.start_time_unix_nano < working.end_time_unix_nano
    assert working.end_time_unix_nano == committing.start_time_unix_nano <= committing.end_time_unix_nano


@pytest.mark.slow
def test_a_receiver_that_does_not_respond_stops_neither_requests_nor_the_stream(
    open_gateway: Callable[..., Gateway], lakehouse: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = f"http://{HOST}:{free_port()}"
    gateway = open_gateway(OTEL_EXPORTER_OTLP_ENDPOINT=nothing, GAMELAKE_TRACE_ONE_IN="1")
    ours = traced_lakehouse(tmp_path, gateway, lakehouse, monkeypatch, nothing)
    sent = events(1000)

    assert gateway.send(body_of(sent)).result.accepted == 1000
    ours.ingest()

    assert ours.event_ids().keys() == {each["event_id"] for each in sent}
    assert ours.reconciliation().problems == []
