"""The spans of traced events in the gateway: the request, its preparation, the wait for Kafka."""

import re
import time
from collections.abc import Sequence

from google.protobuf.descriptor import Descriptor
from google.protobuf.message_factory import GetMessageClass

from gamelake.model.options import TraceOptions
from gamelake.observability.traces.spans import EventSample, EventSpan, SpanExporter
from gamelake.schemas.framing import frame_header
from services.gateway.kafka_producer import Record

_FRAME_BYTES = len(frame_header(0))


class RequestTracer:
    """The base of request tracers: traces nothing."""

    def traced_events(self, _records: Sequence[Record]) -> Sequence[str]:
        """Return the ids of those events of a request's records that are traced."""
        return ()

    def acknowledged(self, events: Sequence[str], game: str, arrived: int, prepared: int) -> None:
        """Record that Kafka has confirmed a request with traced events.

        Args:
            events: the ids of those that are traced.
            game: theirs.
            arrived: when the request did, in nanoseconds since 1970.
            prepared: when its records were sent to Kafka, in nanoseconds since 1970.
        """

    def close(self) -> None:
        """Export what waits."""


class SampledRequestTracer(RequestTracer):
    """Traces a share of the events, by the ends of their ids.

    Args:
        event: the lake's message, in which records are encoded.
        sample: the events that are traced.
        exporter: of this process.
    """

    def __init__(self, event: Descriptor, sample: EventSample, exporter: SpanExporter) -> None:
        self._parse = GetMessageClass(event).FromString
        self._ending = sample.ending
        # The text of an id that may be the event's: no record is parsed without one.
        self._candidate = re.compile(b"-[0-9a-fA-F]{%d}%s" % (12 - sample.zeros, sample.ending.encode()))
        self._exporter = exporter

    def traced_events(self, records: Sequence[Record]) -> Sequence[str]:
        """Return the ids of those events of a request's records that are traced."""
        candidate = self._candidate.search
        values = [record["value"] for record in records if candidate(record["value"])]
        ids = [self._parse(value[_FRAME_BYTES:]).event_id for value in values]  # type: ignore[attr-defined]
        return [each for each in ids if each.endswith(self._ending)]

    def acknowledged(self, events: Sequence[str], game: str, arrived: int, prepared: int) -> None:
        """Export the spans of a request's traced events, which ends now."""
        ended = time.time_ns()
        attributes = {"gamelake.game": game}
        for event in events:
            parts = (("POST /v1/events", arrived, ended), ("prepare", arrived, prepared), ("send", prepared, ended))
            for number, (name, start, end) in enumerate(parts):
                self._exporter.export(
                    EventSpan(
                        event_id=event, name=name, start=start, end=end, attributes=attributes, is_first=number == 0
                    )
                )

    def close(self) -> None:
        """Export what waits."""
        self._exporter.close()


def request_tracer(options: TraceOptions, event: Descriptor) -> RequestTracer:
    """Return the tracer of a process of the gateway.

    Raises:
        StartupError: traces are on, and OpenTelemetry is not installed.
    """
    if not options.are_wanted:
        return RequestTracer()
    return SampledRequestTracer(event, EventSample.of(options), SpanExporter.of("gamelake-gateway"))
