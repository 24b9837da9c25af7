"""Limits of schemas: how deep, how wide and how large one may be, and what a record of it may take in memory.

A schema of a few lines can have more columns than memory holds, and nesting that no reader of the table accepts. The
limits are checked before a schema is expanded to columns.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import field as dataclass_field

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from gamelake.model.environment import Environment
from gamelake.model.errors import SchemaError

# delta-rs reads 128 levels of JSON; a list of structs takes four of them, the schema around the columns three.
DEEPEST = 40
LONGEST_NAME = 255
_MIB = 2**20
# Each becomes one column, so what is in it has none.
SINGLE_COLUMNS = frozenset(
    {f"google.protobuf.{name}" for name in ("Timestamp", "Duration")}
    | {f"google.protobuf.{name}Value" for name in ("Bool", "Bytes", "String", "Float", "Double")}
    | {f"google.protobuf.{name}Value" for name in ("Int32", "Int64", "UInt32", "UInt64")}
    | {"google.type.Date", "google.type.TimeOfDay"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaLimits:
    """The limits of a schema, and of a record of it.

    Attributes:
        depth: messages inside each other, the event itself counted.
        columns: fields of the event and of all messages inside it.
        source_bytes: the schema and all that it refers to, as the registry gives them.
        record_bytes: the lists of messages and enums of a record once it is decoded.
    """

    depth: int = 30
    columns: int = 2_000
    source_bytes: int = 2**20
    record_bytes: int = 32 * _MIB


def schema_limits(env: Environment) -> SchemaLimits:
    """Read the limits of schemas.

    Raises:
        SettingsError: a variable is malformed.
    """
    return SchemaLimits(
        depth=env.whole("GAMELAKE_SCHEMA_MAX_DEPTH", 30, 1, DEEPEST),
        columns=env.whole("GAMELAKE_SCHEMA_MAX_COLUMNS", 2_000, 1, 100_000),
        source_bytes=env.whole("GAMELAKE_SCHEMA_MAX_BYTES", 2**20, 1_024, 2**26),
        record_bytes=env.whole("GAMELAKE_RECORD_MAX_MIB", 32, 1, 16_384) * _MIB,
    )


def check_size(sources: Iterable[str], limits: SchemaLimits) -> None:
    """Check the size of a schema's sources, before they are compiled.

    Raises:
        SchemaError: they are larger than the limit.
    """
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in sources)
    if size > limits.source_bytes:
        raise SchemaError(
            f"the schema has {size} bytes with all that it refers to, more than {limits.source_bytes} "
            "(GAMELAKE_SCHEMA_MAX_BYTES)"
        )


def check_limits(message: Descriptor, limits: SchemaLimits) -> None:
    """Check that the columns of a message type are within the limits; takes time for as many columns as allowed.

    Raises:
        SchemaError: they are not; the message names the limit's setting.
    """
    _Walk(str(message.full_name), limits).visit(message, ())


@dataclass(slots=True)
class _Walk:
    """A walk over all columns, which ends at the first limit: the columns may be more than can be counted."""

    name: str
    limits: SchemaLimits
    columns: int = 0
    enums: set[str] = dataclass_field(default_factory=set)

    def visit(self, message: Descriptor, outer: tuple[str, ...]) -> None:
        if len(outer) >= self.limits.depth:
            raise SchemaError(
                f"{self.name} has more than {self.limits.depth} messages inside each other "
                "(GAMELAKE_SCHEMA_MAX_DEPTH); make it flatter"
            )
        path = (*outer, str(message.full_name))
        for field in message.fields:
            self.columns += 1
            if self.columns > self.limits.columns:
                raise SchemaError(
                    f"{self.name} has more than {self.limits.columns} columns (GAMELAKE_SCHEMA_MAX_COLUMNS), those of "
                    "messages inside it counted; send what is not queried as one field of bytes"
                )
            if len(field.name) > LONGEST_NAME or self._has_long_names(field):
                raise SchemaError(
                    f"{self.name} has a field or an enum with a name of more than {LONGEST_NAME} characters"
                )
            inner = _content(field)
            # A message inside one of its own type is a column of bytes.
            if inner is not None and inner.full_name not in SINGLE_COLUMNS and inner.full_name not in path:
                self.visit(inner, path)

    def _has_long_names(self, field: FieldDescriptor) -> bool:
        """Check the names of an enum's numbers, once: a record has a byte for a number, and a column its name."""
        enum = field.enum_type
        if enum is None or enum.full_name in self.enums:
            return False
        self.enums.add(str(enum.full_name))
        return any(len(number.name) > LONGEST_NAME for number in enum.values)


def _content(field: FieldDescriptor) -> Descriptor | None:
    """The message type of a field or of a map's values; None if these are scalars."""
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        return inner.fields_by_name["value"].message_type
    return inner
