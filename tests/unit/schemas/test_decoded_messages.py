"""Messages of Google's public types decode to what the protobuf package reads, whatever is in them."""

import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from gamelake.schemas.compiler import message_at
from gamelake.schemas.decoder import Decoder
from gamelake.schemas.registry import SchemaSource
from gamelake.schemas.schema_cache import MissingSchema, SchemaCache
from tests.unit.properties import examples
from tests.unit.schemas.expected_columns import expected_columns, same
from tests.unit.schemas.protos import NO_WAIT, AnyMessage, FakeRegistry, a_store, frame, google_file
from tests.unit.schemas.random_messages import messages

# File to messages. Each stands in a message of the test alone, in a list and as the value of a map.
_TYPES = {
    "google/type/color.proto": ("Color",),
    "google/type/date.proto": ("Date",),
    "google/type/datetime.proto": ("DateTime", "TimeZone"),
    "google/type/decimal.proto": ("Decimal",),
    "google/type/expr.proto": ("Expr",),
    "google/type/fraction.proto": ("Fraction",),
    "google/type/interval.proto": ("Interval",),
    "google/type/latlng.proto": ("LatLng",),
    "google/type/localized_text.proto": ("LocalizedText",),
    "google/type/money.proto": ("Money",),
    "google/type/phone_number.proto": ("PhoneNumber",),
    "google/type/postal_address.proto": ("PostalAddress",),
    "google/type/quaternion.proto": ("Quaternion",),
    "google/type/timeofday.proto": ("TimeOfDay",),
    "google/rpc/status.proto": ("Status",),
    "google/rpc/http.proto": ("HttpRequest", "HttpResponse"),
    "google/rpc/error_details.proto": (
        "ErrorInfo", "RetryInfo", "DebugInfo", "QuotaFailure", "PreconditionFailure", "BadRequest", "RequestInfo",
        "ResourceInfo", "Help", "LocalizedMessage",
    ),
    "google/rpc/context/attribute_context.proto": ("AttributeContext",),
    "google/api/distribution.proto": ("Distribution",),
    "google/api/http.proto": ("Http",),
    "google/api/httpbody.proto": ("HttpBody",),
    "google/api/label.proto": ("LabelDescriptor",),
    "google/api/metric.proto": ("MetricDescriptor", "Metric"),
    "google/api/monitored_resource.proto": ("MonitoredResource", "MonitoredResourceMetadata"),
    "google/api/quota.proto": ("Quota",),
    "google/protobuf/any.proto": ("Any",),
    "google/protobuf/api.proto": ("Api",),
    "google/protobuf/descriptor.proto": ("UninterpretedOption",),
    "google/protobuf/duration.proto": ("Duration",),
    "google/protobuf/empty.proto": ("Empty",),
    "google/protobuf/field_mask.proto": ("FieldMask",),
    "google/protobuf/source_context.proto": ("SourceContext",),
    "google/protobuf/struct.proto": ("Struct", "Value", "ListValue"),
    "google/protobuf/timestamp.proto": ("Timestamp",),
    "google/protobuf/type.proto": ("Type", "Enum"),
    "google/protobuf/wrappers.proto": (
        "DoubleValue", "FloatValue", "Int64Value", "UInt64Value", "Int32Value", "UInt32Value", "BoolValue",
        "StringValue", "BytesValue",
    ),
}  # fmt: skip
# What the files above import besides each other.
_IMPORTED = (
    "google/api/annotations.proto",
    "google/api/launch_stage.proto",
    "google/type/dayofweek.proto",
    "google/type/month.proto",
    "google/api/client.proto",
    "google/api/field_behavior.proto",
    "google/rpc/code.proto",
)
_NAMES = [f"{file.rpartition('/')[0].replace('/', '.')}.{name}" for file, names in _TYPES.items() for name in names]
_SCHEMA_ID = 12


def _source() -> SchemaSource:
    """One schema with a message around each type, importing all of Google's files."""
    lines = ['syntax = "proto3";', "package around;", *(f'import "{file}";' for file in _TYPES)]
    for number, name in enumerate(_NAMES):
        lines.append(
            f"message M{number} {{ {name} one = 1; repeated {name} many = 2; map<string, {name}> named = 3; }}"
        )
    others = {file: google_file(file) for file in (*_TYPES, *_IMPORTED) if not file.startswith("google/protobuf/")}
    return SchemaSource(texts={"schema.proto": "\n".join(lines), **others})


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> SchemaCache:
    registry = FakeRegistry({_SCHEMA_ID: _source()})
    return SchemaCache(registry, a_store(tmp_path_factory.mktemp("lakehouse")), NO_WAIT)


@pytest.fixture(scope="module")
def decoder(schemas: SchemaCache) -> Decoder:
    return Decoder(schemas)


def _class_of(schemas: SchemaCache, number: int) -> AnyMessage:
    schema = schemas.get(_SCHEMA_ID)
    assert not isinstance(schema, MissingSchema), schema.detail
    return GetMessageClass(message_at(schema, (number,)))


@pytest.mark.parametrize("name", _NAMES)
def test_columns_are_what_the_protobuf_package_reads(name: str, schemas: SchemaCache, decoder: Decoder) -> None:
    number = _NAMES.index(name)
    event_class = _class_of(schemas, number)

    @examples(8)
    @given(st.lists(messages(event_class.DESCRIPTOR), min_size=1, max_size=4))
    def check(events: list[AnyMessage]) -> None:
        frames = [frame(_SCHEMA_ID, event.SerializePartialToString(), number) for event in events]
        decoded = decoder.decode(pa.array(frames, pa.binary()))

        assert decoded.rejects.details == []
        assert decoded.groups[0].rows.tolist() == list(range(len(events)))
        rows = decoded.groups[0].columns.to_pylist() or [{}] * len(events)
        for row, event in zip(rows, events, strict=True):
            assert same(row, expected_columns(event)), (row, expected_columns(event))

    check()
