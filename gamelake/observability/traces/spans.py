"""The choice of events to trace, and the export of their spans by OTLP."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from gamelake.model.errors import StartupError
from gamelake.model.options import TraceOptions

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

_HALF = 2**64 - 1
_UUID = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSpan:
    """A part of an event's way.

    Attributes:
        event_id: the id of the trace, if it is a UUID; otherwise the event has none.
        name: what was done.
        start: nanoseconds since 1970.
        end: nanoseconds since 1970.
        attributes: by OpenTelemetry's names where it has one.
        is_first: whether all other spans of the event are its children: the gateway's request.
    """

    event_id: str
    name: str
    start: int
    end: int
    attributes: Mapping[str, str | int] = field(default_factory=dict)
    is_first: bool = False


class SpanExporter:
    """Exports spans in the background, 512 at a time; if more than 2,048 wait, the newest are dropped.

    The standard variables of OpenTelemetry say where to and how, `OTEL_EXPORTER_OTLP_ENDPOINT` first of all.
    """

    def __init__(self, processor: "BatchSpanProcessor", resource: "Resource") -> None:
        self._processor = processor
        self._resource = resource

    @classmethod
    def of(cls, service: str) -> "SpanExporter":
        """Return the exporter of a process; `service` is its name unless `OTEL_SERVICE_NAME` has another.

        Raises:
            StartupError: OpenTelemetry is not installed.
        """
        try:
            # 0.1 seconds and ten megabytes, which processes without traces save.
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
            from opentelemetry.sdk.resources import OTELResourceDetector, Resource  # noqa: PLC0415
            from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        except ImportError as error:
            raise StartupError(
                f"GAMELAKE_TRACE_ONE_IN is set, and OpenTelemetry can't be loaded: {error}. "
                "Install it by pip install 'gamelake[traces]'"
            ) from error
        resource = Resource({"service.name": service}).merge(OTELResourceDetector().detect())
        return cls(BatchSpanProcessor(OTLPSpanExporter()), resource)

    def export(self, span: EventSpan) -> None:
        """Export a span soon, without waiting for it."""
        if not _UUID.fullmatch(span.event_id):
            return
        from opentelemetry.sdk.trace import ReadableSpan  # noqa: PLC0415 # loaded by `of`
        from opentelemetry.trace import SpanContext, SpanKind, TraceFlags  # noqa: PLC0415

        trace = UUID(span.event_id).int
        sampled = TraceFlags(TraceFlags.SAMPLED)
        first = SpanContext(trace, trace & _HALF, is_remote=True, trace_flags=sampled)
        own = SpanContext(trace, secrets.randbits(64) or 1, is_remote=False, trace_flags=sampled)
        self._processor.on_end(
            ReadableSpan(
                name=span.name,
                context=first if span.is_first else own,
                parent=None if span.is_first else first,
                resource=self._resource,
                attributes=span.attributes,
                kind=SpanKind.SERVER if span.is_first else SpanKind.INTERNAL,
                start_time=span.start,
                end_time=span.end,
            )
        )

    def close(self) -> None:
        """Export what waits, for some seconds at most."""
        self._processor.shutdown()  # type: ignore[no-untyped-call] # untyped


@dataclass(frozen=True, slots=True)
class EventSample:
    """The events that are traced: those whose ids end with a number of zeros."""

    zeros: int

    @classmethod
    def of(cls, options: TraceOptions) -> "EventSample":
        """Sample one event in `one_in`."""
        return cls(len(f"{options.one_in:x}") - 1)

    @property
    def ending(self) -> str:
        """The end of the ids of these events."""
        return "0" * self.zeros
