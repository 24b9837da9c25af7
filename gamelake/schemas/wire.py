"""The message type that ptars decodes by, made of the sender's: the same bytes, declared so that no value is lost.

What ptars reads in its own way is declared in another one, and `wire_columns` makes the message's columns of it:

- A message that becomes one value (a timestamp, a wrapper, the bytes of a message inside one of its own type) is
  declared as repeated. ptars keeps the last one only, where the protocol merges them; so a record with two is found.
- A map is declared as the list of entries that it is on the wire.
- An enum is a number, which is faster than ptars' names.
- A text that need not be UTF-8, as in proto2, is bytes.

The declaration is in proto3 whatever the sender's is, so that proto2 and editions decode alike.
Source: Protocol Buffers documentation, "Encoding".
"""

from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from gamelake.model.errors import SchemaError
from gamelake.schemas.compiler import all_messages
from gamelake.schemas.limits import SINGLE_COLUMNS
from gamelake.schemas.wire_columns import (
    EnumColumn,
    ListColumn,
    MapColumn,
    MessageColumn,
    OnceColumn,
    TextColumn,
    WireColumn,
)

_FILE = "wire.proto"
_PACKAGE = "wire"
_LENGTH_DELIMITED = 2
_MORE = 0x80  # set in each byte of a varint but the last


def wire_type(message: Descriptor) -> tuple[Descriptor, MessageColumn]:
    """Return the type that ptars decodes bodies of a message type by, and how its columns become the message's.

    Args:
        message: within the limits of schemas, without groups.

    Raises:
        SchemaError: names of fields differ by case only.
    """
    builder = _Builder()
    column = builder.message(message, ())
    return builder.built(), column


def with_open_enums(message: Descriptor) -> Descriptor:
    """Return the same message type with closed enums as numbers: the Protobuf package drops no number."""
    files = _files(message.file, {})
    protos = []
    for file in files.values():
        proto = FileDescriptorProto()
        file.CopyToProto(proto)
        protos.append(proto)
    pool = DescriptorPool()
    for proto in protos:
        for each in all_messages(proto.message_type):
            for part in each.field:
                if part.type == part.TYPE_ENUM:
                    part.type = part.TYPE_INT32
                    part.ClearField("type_name")
                    part.ClearField("default_value")
        pool.Add(proto)
    return pool.FindMessageTypeByName(message.full_name)


def _files(file: FileDescriptor, found: dict[str, FileDescriptor]) -> dict[str, FileDescriptor]:
    """A file and all that it imports, by name, each after its imports."""
    for each in file.dependencies:
        if each.name not in found:
            _files(each, found)
    found[file.name] = file
    return found


class _Builder:
    """Declares a new message at each place at which one stands: what is a column of bytes depends on the place."""

    def __init__(self) -> None:
        self._file = FileDescriptorProto(name=_FILE, package=_PACKAGE, syntax="proto3")
        self._single: dict[str, FileDescriptorProto] = {}

    def built(self) -> Descriptor:
        pool = DescriptorPool()
        for file in self._single.values():
            pool.Add(file)
        self._file.dependency.extend(file.name for file in self._single.values())
        pool.Add(self._file)
        return pool.FindMessageTypeByName(f"{_PACKAGE}.{self._file.message_type[0].name}")

    def message(self, message: Descriptor, outer: tuple[str, ...]) -> MessageColumn:
        """Declare a message and those inside it.

        Raises:
            SchemaError: names of its fields differ by case only, which no table can have.
        """
        names = [str(field.name) for field in message.fields]
        if len({name.lower() for name in names}) < len(names):
            raise SchemaError(f"{message.full_name} has fields whose names differ by case only; rename one")
        # proto2 may have such names, in which proto3 sees one name in JSON.
        clashes = len({name.lower().replace("_", "") for name in names}) < len(names)
        declared_names = {name: f"f{number}" if clashes else name for number, name in enumerate(names)}
        declared = self._file.message_type.add(name=f"M{len(self._file.message_type)}")
        path = (*outer, str(message.full_name))
        columns = {
            declared_names[str(field.name)]: self._field(declared, declared_names[str(field.name)], field, path)
            for field in message.fields
        }
        oneofs = [[declared_names[str(field.name)] for field in oneof.fields] for oneof in message.oneofs]
        renamed = {new: old for old, new in declared_names.items()} if clashes else {}
        return MessageColumn(columns, [members for members in oneofs if len(members) > 1], renamed)

    def _field(
        self, declared: DescriptorProto, name: str, field: FieldDescriptor, path: tuple[str, ...]
    ) -> WireColumn | None:
        part = declared.field.add(name=name, number=field.number, json_name=name)
        part.label = part.LABEL_REPEATED if field.is_repeated else part.LABEL_OPTIONAL
        if field.message_type is None:
            if field.has_presence:
                part.proto3_optional, part.oneof_index = True, len(declared.oneof_decl)
                declared.oneof_decl.add(name=f"_{name}")
            column = _scalar(part, field)
            return ListColumn(column) if column is not None and field.is_repeated else column
        if field.message_type.GetOptions().map_entry:
            return self._map(part, field.message_type, path)
        return self._message_field(part, field.message_type, path, is_repeated=field.is_repeated)

    def _map(self, part: FieldDescriptorProto, entry: Descriptor, path: tuple[str, ...]) -> WireColumn:
        part.type, part.type_name = part.TYPE_MESSAGE, f".{_PACKAGE}.M{len(self._file.message_type)}"
        declared = self._file.message_type.add(name=f"M{len(self._file.message_type)}")
        keys, values = entry.fields_by_name["key"], entry.fields_by_name["value"]
        key = declared.field.add(name="key", number=1, label=part.LABEL_OPTIONAL)
        key_column = _scalar(key, keys)
        value = declared.field.add(name="value", number=2, label=part.LABEL_OPTIONAL)
        if values.message_type is None:
            return MapColumn(key_column, _scalar(value, values))
        return MapColumn(key_column, self._message_field(value, values.message_type, path, is_repeated=False))

    def _message_field(
        self, part: FieldDescriptorProto, message: Descriptor, path: tuple[str, ...], *, is_repeated: bool
    ) -> WireColumn | None:
        """Declare a field of a message type: as what is inside it, one value, or bytes."""
        name = str(message.full_name)
        if name in SINGLE_COLUMNS:
            self._declare_single(message)
            part.type, part.type_name = part.TYPE_MESSAGE, f".{name}"
        elif name in path:
            part.type = part.TYPE_BYTES
        else:
            part.type, part.type_name = part.TYPE_MESSAGE, f".{_PACKAGE}.M{len(self._file.message_type)}"
            column = self.message(message, path)
            content = column if column.has_work else None
            return ListColumn(content) if content is not None and is_repeated else content
        if is_repeated:
            return None
        part.label = part.LABEL_REPEATED
        return OnceColumn()

    def _declare_single(self, message: Descriptor) -> None:
        # ptars knows these by name, whatever they declare.
        package, _, name = str(message.full_name).rpartition(".")
        file = self._single.setdefault(package, FileDescriptorProto(name=f"{package}.proto", package=package))
        if name not in {each.name for each in file.message_type}:
            file.message_type.add(name=name)


def _scalar(part: FieldDescriptorProto, field: FieldDescriptor) -> WireColumn | None:
    part.type = FieldDescriptorProto.Type.ValueType(field.type)
    if field.enum_type is not None:
        part.type = part.TYPE_INT32
        return _enum(field.enum_type)
    if field.type == field.TYPE_STRING and _takes_any_bytes(field):
        part.type = part.TYPE_BYTES
        return TextColumn()
    return None


def _takes_any_bytes(field: FieldDescriptor) -> bool:
    """Return True if a text need not be UTF-8, as in proto2 or by a feature of editions: tried with one that is not."""
    message: Any = field.containing_type
    try:
        GetMessageClass(message).FromString(varint(field.number << 3 | _LENGTH_DELIMITED) + b"\x01\xff")
    except DecodeError:
        return False
    return True


def _enum(enum: EnumDescriptor) -> EnumColumn:
    return EnumColumn({number: str(enum.values_by_number[number].name) for number in enum.values_by_number})


def varint(number: int) -> bytes:
    """Encode a number as it is on the wire: seven bits a byte, the lowest first."""
    rest = bytearray()
    while number >= _MORE:
        rest.append(number % _MORE | _MORE)
        number >>= 7
    return bytes([*rest, number])
