"""The traced events of a request are found in its records by the ends of their ids."""

from google.protobuf.message_factory import GetMessageClass

from gamelake.observability.traces.spans import EventSample, EventSpan, SpanExporter
from services.gateway.events.preparation import RecordEncoder
from services.gateway.traces import SampledRequestTracer
from tests.unit.gateway.events import schema

MESSAGE = schema().message


class NoExport(SpanExporter):
    """Exports nothing."""

    def __init__(self) -> None:
        pass

    def export(self, span: EventSpan) -> None:
        raise AssertionError(span)


def test_an_event_is_traced_by_its_own_id_and_by_no_other_text_in_it() -> None:
    plain, zeros = "11111111-1111-4111-8111-111111111111", "11111111-1111-4111-8111-111111111000"
    make = GetMessageClass(MESSAGE)
    records = RecordEncoder(1).encode(
        [make(event_id=plain, session_id=zeros), make(event_id=zeros, session_id=plain), make(event_id=plain)]
    )

    found = {
        digits: SampledRequestTracer(MESSAGE, EventSample(digits), NoExport()).traced_events(records)
        for digits in (0, 3, 4)
    }

    assert found == {0: [plain, zeros, plain], 3: [zeros], 4: []}
